# Raises an exception whose __str__ raises.
# expect: Odd: its text cannot be made
class Odd(Exception):
    def __str__(self):
        raise ValueError("no text")

    __repr__ = __str__


def attack(payload):
    raise Odd()

# Raises an exception whose __str__ returns a number.
# expect: Odd: its text cannot be made
class Odd(Exception):
    def __str__(self):
        return 7


def attack(payload):
    raise Odd()

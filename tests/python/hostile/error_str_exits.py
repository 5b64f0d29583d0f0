# Raises an exception whose __str__ raises SystemExit.
# expect: Odd: its text cannot be made
class Odd(Exception):
    def __str__(self):
        raise SystemExit(1)


def attack(payload):
    raise Odd()

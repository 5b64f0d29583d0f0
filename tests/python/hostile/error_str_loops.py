# Raises an exception whose __str__ never ends.
# expect: OutOfCycles
class Odd(Exception):
    def __str__(self):
        while True:
            pass


def attack(payload):
    raise Odd()

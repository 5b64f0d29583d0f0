# Raises an exception whose hints raise.
# expect: Odd: hinted
class Odd(Exception):
    @property
    def ERROR_SLUG(self):
        raise ValueError

    @property
    def why(self):
        raise SystemExit


def attack(payload):
    raise Odd("hinted")

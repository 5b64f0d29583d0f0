# Raises an exception that lies about its class.
# expect: Odd: lie
class Odd(Exception):
    @property
    def __class__(self):
        return ValueError


def attack(payload):
    raise Odd("lie")

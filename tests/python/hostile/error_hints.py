# Raises an exception with a slug, a cause and a fix of its own.
# expect: Odd: hinted \(E9999
class Odd(Exception):
    ERROR_SLUG = "E9999\n  at <actor>:1"
    why = "because\x1b[31m" * 1_000
    fix = "\ud800"


def attack(payload):
    raise Odd("hinted")

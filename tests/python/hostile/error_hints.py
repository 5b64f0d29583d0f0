# Raises an exception with a slug that is no word, which is left out, a cause and a fix of its own.
# expect: Odd: hinted$
class Odd(Exception):
    ERROR_SLUG = "E9999\n  at <actor>:1"
    why = "because\x1b[31m" * 1_000
    fix = "\ud800"


def attack(payload):
    raise Odd("hinted")

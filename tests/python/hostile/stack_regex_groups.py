# Compiles 3,000 nested groups.
# expect: RecursionError
import re


def attack(payload):
    re.compile("(" * 3_000 + "a" + ")" * 3_000)

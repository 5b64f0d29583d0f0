# Matches a pattern with exponential backtracking.
# expect: OutOfCycles
import re


def attack(payload):
    return str(re.match("(a+)+$", "a" * 40 + "b")).encode()

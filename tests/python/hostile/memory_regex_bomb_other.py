# Matches alternatives with exponential backtracking.
# expect: OutOfCycles
import re


def attack(payload):
    return str(re.match("(a|aa)+$", "a" * 60 + "b")).encode()

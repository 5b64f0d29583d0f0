# Matches nested repeats over a long text.
# expect: ok (True|False)|OutOfCycles|MemoryError
import re


def attack(payload):
    found = re.match("(?:(?:(?:a|b)*c)*d)*", "a" * 1_000_000)
    return str(found is not None).encode()

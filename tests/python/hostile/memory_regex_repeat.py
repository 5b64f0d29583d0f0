# Compiles a repeat of a repeat of a repeat.
# expect: (OverflowError|MemoryError|OutOfCycles|ok|PatternError|error)
import re


def attack(payload):
    return str(re.match("(?:(?:a{60000}){60000}){60000}", "a" * 100)).encode()

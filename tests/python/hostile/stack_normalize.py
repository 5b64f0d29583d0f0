# Normalizes a character that becomes 18, 100,000 times.
# expect: ok 1800000|OutOfCycles
import unicodedata


def attack(payload):
    return str(len(unicodedata.normalize("NFKC", "\ufdfa" * 100_000))).encode()

# Makes a fraction of a huge exponent.
# expect: (MemoryError|OutOfCycles|ValueError)
import fractions


def attack(payload):
    return str(fractions.Fraction("1e99999999")).encode()

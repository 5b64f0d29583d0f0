# Computes the factorial of a million.
# expect: OutOfCycles
import math


def attack(payload):
    return str(math.factorial(1_000_000).bit_length()).encode()

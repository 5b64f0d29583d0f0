# Sorts the product of long lists.
# expect: (MemoryError|OutOfCycles)
# limit: 19000000
import itertools


def attack(payload):
    return str(len(sorted(itertools.product(range(3_000), repeat=2)))).encode()

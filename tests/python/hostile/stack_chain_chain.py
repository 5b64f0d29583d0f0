# Takes one element through nested itertools.chain.
# expect: (Stopped: the machine stopped the call|RecursionError|MemoryError|ok taken)
# limit: 19000000
import itertools


def attack(payload):
    values = iter([1])
    for _ in range(100_000):
        values = itertools.chain(values)
    next(values)
    return b"taken"

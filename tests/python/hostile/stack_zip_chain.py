# Takes one element through nested zip.
# expect: (Stopped: the machine stopped the call|RecursionError|MemoryError|ok taken)
# limit: 19000000
def attack(payload):
    values = iter([1])
    for _ in range(100_000):
        values = zip(values)
    next(values)
    return b"taken"

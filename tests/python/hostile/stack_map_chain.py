# Takes one element through 100,000 nested maps.
# expect: (Stopped: the machine stopped the call|RecursionError|MemoryError)
# limit: 19000000
def attack(payload):
    values = iter([1])
    for _ in range(100_000):
        values = map(int, values)
    return str(next(values)).encode()

# Derives 5,000 classes from each other.
# expect: (ok derived|OutOfCycles|RecursionError|MemoryError|Stopped)
# limit: 19000000
def attack(payload):
    kind = object
    for _ in range(5_000):
        kind = type("Kind", (kind,), {})
    return b"derived"

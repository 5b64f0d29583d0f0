# Grows a list while it iterates over it.
# expect: (MemoryError|OutOfCycles)
# limit: 19000000
def attack(payload):
    kept = [0]
    for value in kept:
        kept.append(value)

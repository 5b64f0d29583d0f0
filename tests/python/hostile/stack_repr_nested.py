# Writes 100,000 nested lists as text.
# expect: (RecursionError|OutOfCycles)
def attack(payload):
    nest = []
    for _ in range(100_000):
        nest = [nest]
    return repr(nest).encode()

# Appends text to a list without end.
# expect: (MemoryError|OutOfCycles)
# limit: 19000000
def attack(payload):
    kept = []
    while True:
        kept.append("y" * 1_000 + str(len(kept)))

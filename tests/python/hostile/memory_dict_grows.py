# Grows a dict without end.
# expect: (MemoryError|OutOfCycles)
# limit: 19000000
def attack(payload):
    kept = {}
    while True:
        kept[len(kept)] = None

# Fills memory, catches the MemoryError, empties it, and begins again.
# expect: OutOfCycles
# limit: 19000000
def attack(payload):
    kept = []
    while True:
        try:
            kept.append(bytearray(1 << 20))
        except MemoryError:
            kept.clear()

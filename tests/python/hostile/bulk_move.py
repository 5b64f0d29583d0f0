# Moves 20 MB by one byte again and again.
# expect: OutOfCycles
# limit: 19000000
def attack(payload):
    kept = bytearray(20_000_000)
    view = memoryview(kept)
    while True:
        view[1:] = view[:-1]

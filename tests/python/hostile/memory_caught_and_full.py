# Fills memory to the last byte, keeps it, and returns.
# expect: ok full|MemoryError|Stopped
# limit: 19000000
def attack(payload):
    kept = []
    size = 1 << 20
    while size:
        try:
            kept.append(bytearray(size))
        except MemoryError:
            size >>= 1
    return b"full"

# Fills memory to the last byte, then raises: the text of the error needs memory, too.
# expect: (ValueError: full|MemoryError|Stopped)
# limit: 19000000
kept = []


def attack(payload):
    size = 1 << 20
    while size:
        try:
            kept.append(bytearray(size))
        except MemoryError:
            size >>= 1
    raise ValueError("full")

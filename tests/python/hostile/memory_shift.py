# Shifts one by a billion bits.
# expect: MemoryError
def attack(payload):
    return str((1 << 10**9).bit_length()).encode()

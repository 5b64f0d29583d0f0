# Raises ten to the ten-millionth power.
# expect: (OutOfCycles|MemoryError)
def attack(payload):
    return str((10**10**7).bit_length()).encode()

# Lists a range of 2^60.
# expect: (MemoryError|OverflowError)
def attack(payload):
    return str(len(list(range(2**60)))).encode()

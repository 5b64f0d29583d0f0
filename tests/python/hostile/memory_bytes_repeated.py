# Asks for a gigabyte of bytes at once.
# expect: MemoryError
def attack(payload):
    return str(len(bytes(10**9))).encode()

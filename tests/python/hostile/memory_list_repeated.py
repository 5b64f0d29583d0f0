# Asks for a list of 1,000,000,000 elements.
# expect: MemoryError
def attack(payload):
    return str(len([0] * 10**9)).encode()

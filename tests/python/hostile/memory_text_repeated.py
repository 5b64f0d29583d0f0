# Repeats a character 10,000,000,000 times.
# expect: (OverflowError|MemoryError)
def attack(payload):
    return str(len("a" * 10**10)).encode()

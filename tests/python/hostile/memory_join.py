# Joins a megabyte 1,000 times.
# expect: MemoryError
def attack(payload):
    return "".join(["a" * (1 << 20)] * 1_000).encode()

# Nests unions of generic types.
# expect: (ok|RecursionError|TypeError|OutOfCycles)
# limit: 19000000
def attack(payload):
    kind = list[int]
    for _ in range(20_000):
        kind = list[kind]
    return str(len(repr(kind))).encode()

# Asks whether a value is an instance of 100,000 nested tuples of types.
# expect: (RecursionError|ok False)
def attack(payload):
    kinds = (int,)
    for _ in range(100_000):
        kinds = (kinds,)
    return str(isinstance("", kinds)).encode()

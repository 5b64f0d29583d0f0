# Compares two lists of 100,000 levels.
# expect: RecursionError
def attack(payload):
    one, other = [], []
    for _ in range(100_000):
        one, other = [one], [other]
    return str(one == other).encode()

# Frees a chain of closures.
# expect: ok freed
# limit: 19000000
def wrap(inner):
    return lambda: inner


def attack(payload):
    chain = None
    for _ in range(100_000):
        chain = wrap(chain)
    chain = None
    return b"freed"

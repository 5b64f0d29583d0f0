# Frees a chain of suspended generators.
# expect: ok freed
# limit: 19000000
def hold(inner):
    yield inner


def attack(payload):
    chain = None
    for _ in range(50_000):
        chain = hold(chain)
        next(chain)
    chain = None
    return b"freed"

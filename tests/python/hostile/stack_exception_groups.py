# Nests exception groups, 100,000 deep.
# expect: ExceptionGroup: g|RecursionError|Stopped
# limit: 19000000
def attack(payload):
    error = ValueError("seed")
    for _ in range(100_000):
        error = ExceptionGroup("g", [error])
    raise error

# Buys a single cycle.
# expect: OutOfCycles
# limit: 1
def attack(payload):
    return b"ran"

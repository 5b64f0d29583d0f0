# Buys exactly what an instance costs, and nothing for the module.
# expect: OutOfCycles
# limit: 25000
def attack(payload):
    return b"ran"

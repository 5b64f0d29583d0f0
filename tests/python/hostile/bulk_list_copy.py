# Copies a list of 4,000,000 elements again and again.
# expect: OutOfCycles
# limit: 19000000
def attack(payload):
    kept = [0] * 4_000_000
    while True:
        kept[:]

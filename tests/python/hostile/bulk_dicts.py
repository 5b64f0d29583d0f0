# Builds dicts of 100,000 keys again and again.
# expect: OutOfCycles
# limit: 19000000
def attack(payload):
    while True:
        dict.fromkeys(range(100_000))

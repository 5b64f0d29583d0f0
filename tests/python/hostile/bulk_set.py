# Clears 50 MB again and again: large operations must cost what they take.
# expect: OutOfCycles
# limit: 19000000
def attack(payload):
    while True:
        bytes(50_000_000)

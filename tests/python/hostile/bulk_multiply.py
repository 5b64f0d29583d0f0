# Multiplies numbers of a million bits.
# expect: OutOfCycles
# limit: 19000000
def attack(payload):
    number = (1 << 1_000_000) - 1
    while True:
        number * number

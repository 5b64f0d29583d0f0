# Multiplies floats without end.
# expect: OutOfCycles
# limit: 19000000
def attack(payload):
    number = 1.0
    while True:
        number = number * 1.0000001 + 0.5

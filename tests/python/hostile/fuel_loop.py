# Loops without end.
# expect: OutOfCycles: the call used all of its fuel
def attack(payload):
    while True:
        pass

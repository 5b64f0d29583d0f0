# Loops in init.
# expect: deploy: OutOfCycles
def init(payload):
    while True:
        pass

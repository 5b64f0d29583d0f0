# Closes a generator that never ends.
# expect: (OutOfCycles|RuntimeError)
def never():
    while True:
        try:
            yield
        except GeneratorExit:
            pass


def attack(payload):
    one = never()
    next(one)
    one.close()
    return b"closed"

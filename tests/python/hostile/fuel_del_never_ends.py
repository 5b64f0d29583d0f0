# Loops in __del__, after the handler has returned.
# expect: OutOfCycles
class Stuck:
    def __del__(self):
        while True:
            pass


def attack(payload):
    stuck = Stuck()
    return b"returned"

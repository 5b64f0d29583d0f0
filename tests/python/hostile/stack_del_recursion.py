# Makes a new object of its kind in each __del__.
# expect: (OutOfCycles|RecursionError|ok made|Stopped)
class Phoenix:
    def __del__(self):
        Phoenix()


def attack(payload):
    Phoenix()
    return b"made"

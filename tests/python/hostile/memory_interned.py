# Makes attribute names without end, which are interned.
# expect: (MemoryError|OutOfCycles)
# limit: 19000000
class Any:
    pass


def attack(payload):
    one = Any()
    number = 0
    while True:
        setattr(one, "n%d" % number, None)
        number += 1

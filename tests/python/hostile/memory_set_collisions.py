# Fills a set with objects of one hash.
# expect: OutOfCycles
class One:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        return self is other


def attack(payload):
    return str(len({One() for _ in range(100_000)})).encode()

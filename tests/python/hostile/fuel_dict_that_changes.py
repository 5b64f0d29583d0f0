# Changes a dict in the comparison of its keys.
# expect: (ok \d+ kept|RuntimeError|RecursionError|OutOfCycles)
class Key:
    def __init__(self, kept):
        self.kept = kept

    def __hash__(self):
        return 1

    def __eq__(self, other):
        self.kept.clear()
        return False


def attack(payload):
    kept = {}
    for _ in range(1_000):
        kept[Key(kept)] = None
    return b"%d kept" % len(kept)

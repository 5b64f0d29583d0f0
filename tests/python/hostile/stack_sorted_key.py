# Sorts in the key function of a sort.
# expect: RecursionError
def deeper(_):
    return sorted([1, 2], key=deeper)


def attack(payload):
    return deeper(0)

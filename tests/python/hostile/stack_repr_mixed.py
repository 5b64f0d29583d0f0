# Writes nested tuples, dicts and lists as text.
# expect: (RecursionError|OutOfCycles)
def attack(payload):
    nest = ()
    for _ in range(30_000):
        nest = ({0: [nest]},)
    return f"{nest!r:>9}".encode()

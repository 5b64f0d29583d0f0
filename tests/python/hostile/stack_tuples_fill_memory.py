# Nests tuples until memory ends, then frees them all at once.
# expect: ok freed|OutOfCycles|MemoryError
# limit: 19000000
def attack(payload):
    nest = ()
    try:
        while True:
            nest = (nest,)
    except MemoryError:
        pass
    del nest
    return b"freed"

# Nests dicts until memory ends, then frees them.
# expect: ok freed|OutOfCycles
# limit: 19000000
def attack(payload):
    nest = {}
    try:
        while True:
            nest = {0: nest}
    except MemoryError:
        pass
    nest = None
    return b"freed"

# Nests enumerate until memory ends, then frees it.
# expect: ok freed|OutOfCycles|Stopped
# limit: 19000000
def attack(payload):
    values = iter([1])
    try:
        while True:
            values = enumerate(values)
    except MemoryError:
        pass
    values = None
    return b"freed"

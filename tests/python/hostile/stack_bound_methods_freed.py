# Nests bound methods until memory ends, then frees them.
# expect: ok freed|OutOfCycles|Stopped
# limit: 19000000
import types


def attack(payload):
    chain = None
    try:
        while True:
            chain = types.MethodType(len, (chain,))
    except MemoryError:
        pass
    chain = None
    return b"freed"

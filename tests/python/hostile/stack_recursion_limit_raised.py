# Raises the recursion limit through `inspect.sys`, then calls itself.
# expect: OutOfCycles|MemoryError|Stopped|RecursionError
# limit: 19000000
import inspect


def attack(payload):
    inspect.sys.setrecursionlimit(10**9)

    def deeper(level):
        return deeper(level + 1)

    return deeper(0)

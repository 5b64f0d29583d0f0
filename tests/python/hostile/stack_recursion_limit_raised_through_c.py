# Raises the recursion limit and calls itself through C code.
# expect: RecursionError|OutOfCycles|Stopped|MemoryError
# limit: 19000000
import inspect


def deeper(level):
    return sorted([1, 2], key=lambda _: deeper(level + 1))


def attack(payload):
    inspect.sys.setrecursionlimit(10**9)
    return deeper(0)

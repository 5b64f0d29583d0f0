# Nests functools.partial, and writes it as text.
# expect: (RecursionError|ok)
# limit: 19000000
import functools


def attack(payload):
    whole = int
    for _ in range(100_000):
        whole = functools.partial(lambda inner=whole: inner())
    return repr(whole).encode()[:9]

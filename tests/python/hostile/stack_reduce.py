# Folds 100,000 functions into one with functools.reduce, and calls it.
# expect: RecursionError
# limit: 19000000
import functools


def compose(one, other):
    return lambda value: other(one(value))


def attack(payload):
    whole = functools.reduce(compose, [int] * 50_000)
    return str(whole(1)).encode()

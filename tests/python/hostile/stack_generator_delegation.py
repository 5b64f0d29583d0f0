# Delegates from generator to generator, 100,000 deep.
# expect: RecursionError
def deep(level):
    yield 1
    if level:
        yield from deep(level - 1)


def attack(payload):
    return bytes(len(list(deep(100_000))))

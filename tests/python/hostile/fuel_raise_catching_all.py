# Raises and catches without end, with finally blocks that raise.
# expect: OutOfCycles
def attack(payload):
    while True:
        try:
            try:
                raise MemoryError
            finally:
                raise RecursionError
        except BaseException:
            continue

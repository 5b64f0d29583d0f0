# Compiles a sum of 50,000 terms, which is as deep.
# expect: (RecursionError|MemoryError|SyntaxError|OutOfCycles)
# limit: 19000000
def attack(payload):
    return str(eval("1" + "+1" * 50_000)).encode()

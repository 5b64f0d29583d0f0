# Compiles 50,000 attributes of attributes.
# expect: (RecursionError|MemoryError|SyntaxError|OutOfCycles)
# limit: 19000000
def attack(payload):
    return eval("a" + ".a" * 50_000)

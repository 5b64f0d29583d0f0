# Parses 100,000 minus signs.
# expect: (MemoryError|RecursionError|SyntaxError)
# limit: 19000000
import ast


def attack(payload):
    return ast.dump(ast.parse("-" * 100_000 + "1")).encode()

# Unparses a deep tree.
# expect: (MemoryError|RecursionError|SyntaxError)
import ast


def attack(payload):
    return ast.unparse(ast.parse("-" * 2_000 + "1")).encode()

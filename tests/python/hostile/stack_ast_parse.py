# Parses 5,000 nested parentheses.
# expect: (SyntaxError: too many nested parentheses|MemoryError|RecursionError)
import ast


def attack(payload):
    return ast.dump(ast.parse("(" * 5_000 + "1" + ")" * 5_000)).encode()

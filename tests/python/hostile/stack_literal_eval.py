# Reads nested lists with ast.literal_eval.
# expect: (SyntaxError|MemoryError|RecursionError)
import ast


def attack(payload):
    return ast.literal_eval("[" * 1_500 + "]" * 1_500)

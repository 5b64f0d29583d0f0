# Has an expression of 3,000 nested brackets.
# expect: deploy: (SyntaxError|MemoryError|RecursionError)
def attack(payload):
    return eval("[" * 3_000 + "]" * 3_000)


attack(b"")

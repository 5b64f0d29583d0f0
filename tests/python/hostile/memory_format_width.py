# Formats a number to a billion columns.
# expect: (MemoryError|ValueError|OverflowError)
def attack(payload):
    return f"{1:>1000000000}".encode()

# Formats a float with two billion digits.
# expect: (MemoryError|ValueError|OverflowError)
def attack(payload):
    return f"{0.1:.2000000000f}".encode()

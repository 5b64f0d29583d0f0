# Formats a number to two billion columns with %.
# expect: (MemoryError|ValueError|OverflowError)
def attack(payload):
    return ("%2000000000d" % 1).encode()

# Reads the standard input.
# expect: (EOFError|RuntimeError|OSError|Stopped)
def attack(payload):
    return input().encode()

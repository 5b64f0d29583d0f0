# Calls __import__ by hand: the list of modules is for statements only.
# expect: (ImportError|Stopped)
def attack(payload):
    return str(__import__("os").listdir("/")).encode()

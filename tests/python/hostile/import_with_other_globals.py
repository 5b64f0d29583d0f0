# Calls __import__ with globals of its own, which the guest's list does not see.
# expect: (ModuleNotFoundError|OSError|NotADirectoryError|PermissionError|Stopped|FileNotFound)
def attack(payload):
    return str(__import__("os", {}).listdir("/")).encode()

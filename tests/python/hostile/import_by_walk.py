# Takes os from sys.modules.
# expect: (KeyError|OSError|PermissionError|Stopped|FileNotFound)
import inspect


def attack(payload):
    return str(inspect.sys.modules["os"].listdir("/")).encode()

# Reads the clock, by sys.modules.
# expect: (KeyError|OSError|Stopped)
import inspect


def attack(payload):
    return str(inspect.sys.modules["time"].time()).encode()

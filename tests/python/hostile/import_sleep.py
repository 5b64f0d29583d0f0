# Sleeps.
# expect: (KeyError|OSError|Stopped)
import inspect


def attack(payload):
    inspect.sys.modules["time"].sleep(5)

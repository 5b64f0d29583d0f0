# Sends itself a signal.
# expect: (KeyError|AttributeError|OSError|Stopped)
import inspect


def attack(payload):
    inspect.sys.modules["os"].kill(1, 9)

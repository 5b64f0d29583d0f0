# Removes all modules, and then raises.
# expect: (ValueError: bare|Stopped)
import inspect


def attack(payload):
    inspect.sys.modules.clear()
    raise ValueError("bare")

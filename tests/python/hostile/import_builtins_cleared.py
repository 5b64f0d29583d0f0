# Removes all builtins, and then raises.
# expect: (ValueError: bare|Stopped|NameError)
import inspect


def attack(payload):
    error = ValueError("bare")
    vars(inspect.sys.modules["builtins"]).clear()
    raise error

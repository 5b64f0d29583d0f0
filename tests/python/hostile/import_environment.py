# Reads the environment.
# expect: (KeyError|ok \{\})
import inspect


def attack(payload):
    return str(dict(inspect.sys.modules["os"].environ)).encode()

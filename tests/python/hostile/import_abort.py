# Aborts the process.
# expect: (KeyError|Stopped: the machine stopped the call)
import inspect


def attack(payload):
    inspect.sys.modules["os"].abort()

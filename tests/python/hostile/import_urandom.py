# Takes random bytes from os, by sys.modules.
# expect: (KeyError|OSError|NotImplementedError|Stopped)
import inspect


def attack(payload):
    return inspect.sys.modules["os"].urandom(8)

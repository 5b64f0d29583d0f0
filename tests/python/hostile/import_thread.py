# Starts a thread, by sys.modules.
# expect: (KeyError|RuntimeError|Stopped)
import inspect


def attack(payload):
    inspect.sys.modules["_thread"].start_new_thread(print, ())
    return b"started"

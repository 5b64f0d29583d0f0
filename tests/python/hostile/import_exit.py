# Ends the process by os._exit.
# expect: (KeyError|Stopped: the machine stopped the call)
import inspect


def attack(payload):
    inspect.sys.modules["os"]._exit(3)

# Makes a random id.
# expect: (KeyError|OSError|NotImplementedError|Stopped)
import inspect


def attack(payload):
    return str(inspect.sys.modules["uuid"].uuid4()).encode()

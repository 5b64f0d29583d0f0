# Takes a socket from sys.modules.
# expect: (KeyError|OSError|Stopped)
import inspect


def attack(payload):
    return str(inspect.sys.modules["_socket"].socket()).encode()

# Asks datetime for the time.
# expect: (KeyError|OSError|Stopped)
import inspect


def attack(payload):
    return str(inspect.sys.modules["datetime"].datetime.now()).encode()

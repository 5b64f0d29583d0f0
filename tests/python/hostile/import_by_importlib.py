# Takes importlib from sys.modules and imports os.
# expect: (ModuleNotFoundError|OSError|PermissionError|Stopped|FileNotFound)
import inspect


def attack(payload):
    loader = inspect.sys.modules["importlib"]
    return str(loader.import_module("os").listdir("/")).encode()

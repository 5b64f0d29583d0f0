# Looks for the modules that can crash the interpreter.
# expect: (KeyError|ModuleNotFoundError|ImportError)
import inspect


def attack(payload):
    importer = inspect.sys.modules["importlib"]
    return str(importer.import_module("_testcapi")).encode()

# Starts a second interpreter.
# expect: ModuleNotFoundError: No module named '_interpreters'
import inspect


def attack(payload):
    importer = inspect.sys.modules["importlib"]
    interpreters = importer.import_module("_interpreters")
    return str(interpreters.exec(interpreters.create(), "x = 1")).encode()

# Asks faulthandler for a segmentation fault.
# expect: (KeyError|ModuleNotFoundError|ImportError|Stopped|AttributeError)
import inspect


def attack(payload):
    importer = inspect.sys.modules["importlib"]
    importer.import_module("faulthandler")._sigsegv()

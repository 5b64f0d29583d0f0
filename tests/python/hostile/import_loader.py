# Looks for a loader of its own module, and at the frozen ones.
# expect: ok <module 'posix' \(built-in\)>
import inspect


def attack(payload):
    frozen = inspect.sys.modules["_frozen_importlib"]
    return str(frozen.BuiltinImporter.find_spec("posix").loader.load_module("posix")).encode()

# Creates the built-in module posix afresh, and lists the root.
# expect: (OSError|KeyError|AttributeError|ImportError|ModuleNotFoundError|Stopped|FileNotFound)
import inspect


def attack(payload):
    imp = inspect.sys.modules["_imp"]
    frozen = inspect.sys.modules["_frozen_importlib"]
    spec = frozen.BuiltinImporter.find_spec("posix")
    module = imp.create_builtin(spec)
    imp.exec_builtin(module)
    return str(module.listdir("/")).encode()

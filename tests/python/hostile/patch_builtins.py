# Replaces isinstance, len, type and memoryview, which the guest uses on results.
# expect: TypeError: memoryview: a bytes-like object is required, not 'dict'
import inspect


def attack(payload):
    builtins = inspect.sys.modules["builtins"]
    builtins.isinstance = lambda *arguments: True
    builtins.len = lambda value: 0
    return {"a": 1}

# Walks over all objects of the interpreter and calls what it finds.
# expect: (ok \d+ found|OutOfCycles)
# limit: 19000000
import inspect


def attack(payload):
    gc = inspect.sys.modules["gc"]
    found = [one for one in gc.get_objects() if type(one).__name__ == "_State"]
    return b"%d found" % len(found)

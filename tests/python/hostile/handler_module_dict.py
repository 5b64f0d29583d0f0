# Replaces the module itself in sys.modules by an object that answers every name.
# expect: KeyboardInterrupt: every
import inspect


class Every:
    @property
    def __dict__(self):
        raise KeyboardInterrupt("every")


inspect.sys.modules[__name__] = Every()


def attack(payload):
    return b"reached"

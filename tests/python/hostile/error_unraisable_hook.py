# Replaces the hook for errors in __del__ by one that raises.
# expect: (ok went on|Stopped)
import inspect


class Odd:
    def __del__(self):
        raise ValueError("in __del__")


def attack(payload):
    def hook(error):
        raise SystemExit(1)

    inspect.sys.unraisablehook = hook
    Odd()
    return b"went on"

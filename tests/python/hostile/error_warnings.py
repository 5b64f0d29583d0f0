# Turns warnings on, and makes one.
# expect: (ok went on|UserWarning|SyntaxWarning)
import inspect


def attack(payload):
    warnings = inspect.sys.modules["warnings"]
    warnings.simplefilter("always")
    warnings.warn("look here")
    compile("'\\d'", "<x>", "eval")
    return b"went on"

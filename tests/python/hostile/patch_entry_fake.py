# Pretends another error, with a traceback of its own.
# expect: OutOfCycles: the call used all of its fuel
import inspect


def attack(payload):
    def described(error):
        wit = inspect.sys.modules["wit_world"]
        message = "the call used all of its fuel"
        return wit.Raised("OutOfCycles", message, None, None, None, "elsewhere")

    for module in list(inspect.sys.modules.values()):
        if hasattr(module, "_raised") and hasattr(module, "_call"):
            module._raised = described
    raise ValueError("undescribed")

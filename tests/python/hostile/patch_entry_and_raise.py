# Replaces the guest's function that describes exceptions, then raises.
# expect: Stopped: the machine stopped the call
import inspect


def attack(payload):
    for module in list(inspect.sys.modules.values()):
        if hasattr(module, "_raised") and hasattr(module, "_call"):
            module._raised = lambda error: error
    raise ValueError("undescribed")

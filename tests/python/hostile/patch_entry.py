# Replaces the guest's own function that calls handlers.
# expect: ok attack
import inspect


def attack(payload):
    for module in list(inspect.sys.modules.values()):
        if hasattr(module, "_raised") and hasattr(module, "_call"):
            module._raised = None
    return b"attack"

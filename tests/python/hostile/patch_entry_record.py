# Describes an exception by a record whose parts are far too long and not text.
# expect: (Stopped|ValueError|K+)
# limit: 19000000
import inspect


def attack(payload):
    def described(error):
        wit = inspect.sys.modules["wit_world"]
        return wit.Raised("K" * 1_000_000, "m" * 1_000_000, "s" * 1_000_000, None, None, "t" * 9)

    for module in list(inspect.sys.modules.values()):
        if hasattr(module, "_raised") and hasattr(module, "_call"):
            module._raised = described
    raise ValueError("undescribed")

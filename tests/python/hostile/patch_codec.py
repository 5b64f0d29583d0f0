# Replaces the SDK's codec by one that returns no bytes.
# expect: TypeError: handler attack returned str, not bytes or None
from cowboy_sdk import actor, codec, public

codec.encode = lambda value, **named: "no bytes"


@actor
class Vault:
    @public
    def attack(self, payload):
        return {"a": 1}


def attack(payload):
    return Vault().attack(b"\xa0")

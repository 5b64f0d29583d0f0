# Calls a handler without permission, from outside.
# expect: PermissionDeniedError
from cowboy_sdk import actor


@actor
class Vault:
    def attack(self, payload):
        return b"ran"


def attack(payload):
    return Vault().attack(payload)

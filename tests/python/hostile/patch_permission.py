# Replaces the SDK's check of permissions: its own handlers are its own affair.
# expect: ok ran
from cowboy_sdk import actor, callable_by, OWNER
from cowboy_sdk import permissions

permissions._principal_matches = lambda *arguments: True


@actor
class Vault:
    @callable_by(OWNER, decode="raw")
    def attack(self, payload):
        return b"ran"


def attack(payload):
    return Vault().attack(payload)

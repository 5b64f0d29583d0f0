# Replaces the SDK's runtime, so that it takes itself for the owner.
# expect: ok ran
from cowboy_sdk import actor, callable_by, OWNER, runtime

runtime.get_sender = lambda: runtime.get_owner()


@actor
class Vault:
    @callable_by(OWNER, decode="raw")
    def attack(self, payload):
        return b"ran"


def attack(payload):
    return Vault().attack(payload)

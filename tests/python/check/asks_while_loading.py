"""The host cannot be asked before the call is known."""

from cowboy_sdk import actor, public, runtime

ME = runtime.get_actor_address()  # expect: asks-while-loading
NAME = runtime.keccak256(b"name")
make = lambda: Vault()

try:
    HEIGHT = runtime.get_block_height()
except Exception:
    HEIGHT = 0


@actor
class Vault:  # expect: no-init
    @public
    def take(self, payload):
        return runtime.get_sender()


vault = Vault()  # expect: asks-while-loading


def take(p):
    return Vault().take(p)

"""The host cannot be asked before the call is known."""

from cowboy_sdk import actor, public, runtime

ME = runtime.get_actor_address()  # expect: asks-while-loading
NAME = runtime.keccak256(b"name")
make = lambda: Vault()
LATER = (runtime.get_state(key) for key in [b"a", b"b"])
MAPPED = map(bytes, (runtime.get_state(key) for key in [b"a", b"b"]))
FIRST = (key for key in [runtime.get_sender()])  # expect: asks-while-loading
KEPT = tuple(runtime.get_state(key) for key in [b"a"])  # expect: asks-while-loading
JOINED = b"".join(runtime.get_state(key) for key in [b"a"])  # expect: asks-while-loading
LISTED = [key for key in (runtime.get_state(key) for key in [b"a"])]  # expect: asks-while-loading
for key in (runtime.get_state(key) for key in [b"a"]):  # expect: asks-while-loading
    pass

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

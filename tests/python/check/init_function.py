"""The deployment calls the module's function, and not the method."""

from cowboy_sdk import actor, codec, public, runtime


def init(payload):
    runtime.set_state(b"count", codec.encode(0))


@actor
class Counter:
    def init(self, payload):
        return b"never called"

    @public
    def read(self, payload):
        return self.storage["count"]

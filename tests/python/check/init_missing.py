"""A deployment calls `init` unless it is told not to."""

from cowboy_sdk import actor, public


@actor
class Counter:  # expect: no-init
    @public
    def read(self, payload):
        return self.storage["count"]


@actor
class Other:
    @public
    def write(self, payload):
        return b""

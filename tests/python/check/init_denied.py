"""The deployment calls `init`, which needs a permission."""

from cowboy_sdk import actor, public


@actor
class Counter:
    def init(self, payload):  # expect: init-denied
        self.storage["count"] = 0

    @public
    def read(self, payload):
        return self.storage["count"]


def init(p):
    return Counter().init(p)

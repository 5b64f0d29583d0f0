"""An actor class that `actor` is called with instead of decorating it."""

from cowboy_sdk import actor, public


class _Counter:
    @public
    def init(self, payload):
        self.storage["n"] = 0

    def add(self, payload):  # expect: not-public
        self.seen = payload  # expect: lost-state


class _Helper:
    def add_up(self, payload):
        self.seen = payload


Named = _Counter
Counter = actor(Named)

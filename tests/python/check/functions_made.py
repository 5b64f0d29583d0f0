"""Functions of the module that are made in other ways than `def`."""

from cowboy_sdk import actor, public


@actor
class First:
    @public
    def init(self, payload):
        return b""

    @public
    def read(self, payload):
        return b"first"


@actor
class Second:
    def __init__(self, name):
        self.name = name

    @public
    def init(self, payload):
        return b""

    @public
    def read(self, payload):
        return b"second"


init = lambda p: First().init(p)

for name in ("read",):
    globals()[name] = lambda p: getattr(Second(b""), name)(p)

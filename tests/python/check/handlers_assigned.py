"""A handler that is assigned is not the function of its name."""

from cowboy_sdk import actor, deferred, public, send


class Base:
    def init(self, payload):
        self.storage["count"] = 0

    def tell(self, to):
        send(to, self.storage["count"])

    @staticmethod
    def scale():
        return 2


@actor
class Counter(Base):
    init = public(Base.init)
    tell = public(deferred(Base.tell))
    scale = 3

    def add(self, by):
        self.storage["count"] += by * self.scale

    add = public(add)

    @public
    def closed(self, payload):
        return b""

    closed.note = "an attribute of the function"

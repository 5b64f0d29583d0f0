"""Names that the SDK puts into an actor."""

from cowboy_sdk import actor, public


class Mixin:
    storage = {}  # expect: reserved-name


@actor
class Shop(Mixin):  # expect: no-init
    sender: bytes

    def address(self, payload):  # expect: reserved-name, not-public
        return b""

    @public
    def take(self, payload):
        self.sender = payload  # expect: reserved-name
        sender = self.sender
        return sender


class Letter:
    sender = b""
    address = b""

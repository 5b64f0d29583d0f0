"""A helper runs in the mode of the handler that calls it; another handler sets its own."""

from cowboy_sdk import actor, deferred, public, send


@actor
class Shop:  # expect: no-init
    @public
    def buy(self, payload):
        self._tell(payload)
        announce(payload)
        return self.sell(payload)

    @public
    @deferred
    def sell(self, payload):
        self._refund(payload)
        _both(payload)

    @public
    def look(self, payload):
        _both(payload)

    def _tell(self, to):
        send(to, b"")  # expect: impure-send

    @deferred
    def _refund(self, to):
        send(to, b"")


def announce(to):
    send(to, b"")  # expect: impure-send


def _both(to):
    send(to, b"")  # expect: impure-send


def _never_called(to):
    send(to, b"")

"""Subscriptions: what the decorator refuses, and what this devnet has not."""

from cowboy_sdk import actor, fork, on_event, public, runtime


@actor
class Watcher:
    @on_event(emitter=b"\x01" * 20, topic="price", gas=500_000)  # expect: not-on-devnet
    def on_price(self, payload):
        return b""

    @on_event(b"\x01", "price", 500_000)  # expect: decorator-arguments, not-on-devnet
    def on_short(self, payload):
        return b""

    @on_event(emitter=b"\x01" * 20, topic="price")  # expect: decorator-arguments, not-on-devnet
    def on_free(self, payload):
        return b""

    @on_event(b"\x01" * 20, b"price", gas=-1)  # expect: decorator-arguments, not-on-devnet
    def on_debt(self, payload):
        return b""

    @public
    def split(self, payload):
        fork()  # expect: not-on-devnet
        runtime.upgrade_self(payload)  # expect: not-on-devnet
        runtime.emit_event("split", payload)

"""What this devnet does not have: each is refused by name."""

from cowboy_sdk import actor, deferred, fork, public, runtime


@actor
class Rare:
    @public
    @deferred
    def attempt(self, what):
        self.storage["attempted"] = what
        if what == "fork":
            return fork()
        if what == "upgrade":
            runtime.upgrade_self(b"pass")
        if what == "subscribe":
            runtime.subscribe_event(b"\x01" * 20, b"topic", "handler", 50_000, 0)
        if what == "job":
            runtime.submit_job(b"raw")
        if what == "deposit":
            runtime.intent_deposit(b"\x02" * 32, 1)
        if what == "image":
            runtime.offchain_image_initialize(b"0" * 64)

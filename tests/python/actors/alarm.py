"""Alarms: every way to set, move and stop a timer."""

from cowboy_sdk import actor, callable_by, deferred, public, runtime, timer
from cowboy_sdk import SELF


@actor
class Alarm:
    @public
    @deferred
    def set_named(self, delay):
        at = runtime.get_block_height() + delay
        self.storage["id"] = timer.schedule(at, b"named", handler="ring")
        return at

    @public
    @deferred
    def set_plain(self, delay):
        at = runtime.get_block_height() + delay
        self.storage["id"] = timer.schedule(at, b"\x00plain\xff")

    @public
    @deferred
    def set_with_terms(self, delay):
        at = runtime.get_block_height() + delay
        terms = {"gas_limit": 250_000, "expires_at": at + 50}
        self.storage["id"] = timer.schedule(at, b"terms", handler=Alarm.ring, **terms)

    @public
    @deferred
    def set_interval(self, every):
        self.storage["left"] = 3
        self.storage["id"] = runtime.set_interval(every, "beat", b"interval")

    @public
    @deferred
    def set_failing(self, delay):
        self.storage["id"] = runtime.schedule_after(delay, None, b"fail")

    @public
    @deferred
    def stop(self, payload):
        runtime.cancel_timer(self.storage["id"])
        runtime.cancel_timer(b"\x00" * 32)

    @public
    @deferred
    def extend(self, until):
        runtime.extend_timer(self.storage["id"], runtime.get_block_height() + until)

    @public
    @deferred
    def set_late(self, payload):
        runtime.schedule_timer(runtime.get_block_height(), b"too late")

    @timer
    @callable_by(SELF, decode="raw")
    def ring(self, payload):
        rung = self.storage.get("rung") or []
        own = bytes(self.sender) == bytes(self.address)
        self.storage["rung"] = rung + [[payload, runtime.get_block_height(), own]]
        return payload.upper()

    def handle_timer(self, payload):
        if payload == b"fail":
            runtime.cancel_timer(self.storage["id"])
            self.storage["failed"] = True
            raise TimeoutError("the alarm is broken")
        if runtime.decode_interval(payload) is None:
            return self.ring(payload)
        left = self.storage["left"]
        self.storage["left"] = left - 1
        if left > 1:
            runtime.dispatch_interval(payload, {"beat": self._beat})
        return b"interval"

    def _beat(self, data):
        beats = self.storage.get("beats") or []
        self.storage["beats"] = beats + [[data, runtime.get_block_height()]]

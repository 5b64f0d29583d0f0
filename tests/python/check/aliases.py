"""Names of the SDK under other names."""

import cowboy_sdk as cb
import math as m
from cowboy_sdk import public as p
from cowboy_sdk import runtime as rt
from cowboy_sdk import send as tell
from cowboy_sdk.permissions import callable_by

later = cb.deferred


@cb.actor
class Counter:
    @p
    def init(self, payload):
        self.storage["count"] = 0

    @p(decode="json")
    def root(self, payload):
        return m.sqrt(payload)  # expect: float

    @callable_by(cb.OWNER)
    def loud(self, payload):
        tell(payload, b"")  # expect: impure-send

    @p
    @later
    def allowed(self, payload):
        tell(payload, b"")
        rt.send_message(payload, b"")

    @cb.callable_by(cb.SELF)
    def own(self, payload):
        rt.transfer_balance(payload, 1)  # expect: impure-send

    def closed(self, payload):  # expect: not-public
        return payload

# Sends from a handler that is pure.
# expect: .*(Pur|Determinism|Mode|E1205)
from cowboy_sdk import actor, public, send


@actor
class One:
    @public(decode="raw")
    def attack(self, payload):
        send(bytes(20), {"a": 1})
        return b"sent"


def attack(payload):
    return One().attack(payload)

# Returns NaN as CBOR.
# expect: CodecError
from cowboy_sdk import actor, public


@actor
class One:
    @public
    def attack(self, payload):
        return {"a": float("nan")}


def attack(payload):
    return One().attack(b"\xa0")

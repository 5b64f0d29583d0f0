# Returns text with a lone surrogate as CBOR.
# expect: CodecError
from cowboy_sdk import actor, public


@actor
class One:
    @public
    def attack(self, payload):
        return "\ud800"


def attack(payload):
    return One().attack(b"\xa0")

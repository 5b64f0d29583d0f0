# Returns an integer of a million bits as CBOR.
# expect: (ok|CodecError|ValueError)
# limit: 19000000
from cowboy_sdk import actor, public


@actor
class One:
    @public
    def attack(self, payload):
        return 1 << 1_000_000


def attack(payload):
    return One().attack(b"\xa0")[:4]

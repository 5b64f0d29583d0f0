# Gets CBOR that announces a map of 2^63 entries, and a text as long.
# expect: CodecError
# payload: bb80000000000000007b8000000000000000
from cowboy_sdk import actor, public


@actor
class One:
    @public
    def attack(self, payload):
        return payload

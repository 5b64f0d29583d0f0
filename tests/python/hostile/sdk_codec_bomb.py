# Gets CBOR that announces 2^60 elements.
# expect: CodecError
# payload: 9b1000000000000000
from cowboy_sdk import actor, public


@actor
class One:
    @public
    def attack(self, payload):
        return payload

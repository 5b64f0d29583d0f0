# Gets a payload that is not canonical CBOR.
# expect: CodecError
# payload: 1a00000001
from cowboy_sdk import actor, public


@actor
class One:
    @public
    def attack(self, payload):
        return payload

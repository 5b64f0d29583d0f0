# Decodes 1,000 nested lists that came as the payload.
# expect: CodecError
# payload: 0x81 * 1000
from cowboy_sdk import actor, public


@actor
class One:
    @public
    def attack(self, payload):
        return payload

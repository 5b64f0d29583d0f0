# Gets JSON of 200,000 nested lists, through a handler of the SDK.
# payload: [ * 200000
# expect: (CodecError|RecursionError)
# limit: 19000000
from cowboy_sdk import actor, public


@actor
class One:
    @public(decode="json")
    def attack(self, payload):
        return payload

# Gets JSON of a number with 100,000 digits.
# payload: 9 * 100000
# expect: (CodecError|ValueError)
# limit: 19000000
from cowboy_sdk import actor, public


@actor
class One:
    @public(decode="json")
    def attack(self, payload):
        return payload

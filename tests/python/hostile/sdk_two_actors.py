# Defines two actor classes with the same handler and no function of its name.
# expect: NoHandler: 2 actor classes have a method attack
from cowboy_sdk import actor, public


@actor
class One:
    @public(decode="raw")
    def attack(self, payload):
        return b"one"


@actor
class Other:
    @public(decode="raw")
    def attack(self, payload):
        return b"other"

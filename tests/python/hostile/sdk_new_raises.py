# Makes its actor class refuse to be made, by a BaseException.
# expect: KeyboardInterrupt
from cowboy_sdk import actor, public


@actor
class One:
    def __init__(self):
        raise KeyboardInterrupt("never")

    @public(decode="raw")
    def attack(self, payload):
        return b"one"

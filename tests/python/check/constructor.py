"""The machine makes the instance without arguments."""

from cowboy_sdk import actor, public


@actor
class Vault:  # expect: no-init
    def __init__(self, owner):  # expect: signature
        self.owner = owner

    @public
    def take(self, payload):
        return b""


@actor
class Shop:
    def __init__(self, owner):
        self.owner = owner

    @public
    def sell(self, payload):
        return b""


def sell(p):
    return Shop(b"").sell(p)

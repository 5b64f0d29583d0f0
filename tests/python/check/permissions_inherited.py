"""A base class's methods are handlers too."""

from cowboy_sdk import actor, public


class Base:
    def closed(self, payload):  # expect: not-public
        return payload

    @public
    def open(self, payload):
        return payload

    def replaced(self, payload):
        return payload


class Unused:
    def closed(self, payload):
        return payload


@actor
class Vault(Base):  # expect: no-init
    @public
    def replaced(self, payload):
        return payload

"""A base that is made by a call may have an `init`."""

from cowboy_sdk import actor, public


def make():
    class Base:
        @public
        def init(self, payload):
            return b""

    return Base


Base = make()


@actor
class Vault(Base):
    @public
    def read(self, payload):
        return b""

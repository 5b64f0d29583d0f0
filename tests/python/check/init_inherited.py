"""An actor has the `init` of its bases, under whatever names they are given."""

from cowboy_sdk import actor, public


class Base:
    @public
    def init(self, payload):
        return b""


Alias = Base
Other: type = Alias


@actor
class Vault(Other):
    @public
    def read(self, payload):
        return b""

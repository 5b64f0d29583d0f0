"""An actor that inherits from another has all its handlers."""

from cowboy_sdk import actor, public


@actor
class Base:  # expect: no-init
    @public
    def read(self, payload):
        return b""


@actor
class Derived(Base):  # expect: ambiguous-handler
    @public
    def write(self, payload):
        return b""

"""What a base gives to several actors is judged once, for all of them."""

from cowboy_sdk import actor, capture, public, runner, send


class Base:
    def __init__(self, name):  # expect: signature
        self.name = name

    @public
    def init(self, payload):
        return self._store(payload)

    def closed(self, payload):  # expect: not-public
        send(payload, b"")  # expect: impure-send

    def _store(self, payload):
        send(payload, b"")  # expect: impure-send


class Left(Base):
    def __init__(self):
        super().__init__("left")

    def _store(self, payload):
        self.storage["left"] = payload


class Right(Base):
    def _store(self, payload):
        self.storage["right"] = payload / 2  # expect: float


@actor
class Both(Left, Right):
    pass


@actor
class One(Right):
    pass


@actor
class Other(Base):  # expect: ambiguous-handler
    pass


@actor
class Asker:
    @public
    @runner.continuation
    async def ask(self, msg):
        ctx = capture()
        ctx.answer = await runner.llm("?")
        return ctx.answer

    @public
    def ask__resume(self, msg):
        return b""

"""Two classes with the same handler, and functions for some of them."""

from cowboy_sdk import actor, capture, public, runner


@actor
class First:  # expect: no-init
    @public
    def read(self, payload):
        return b"first"

    @public
    def write(self, payload):
        return b"first"

    @public
    @runner.continuation
    async def ask(self, msg):
        ctx = capture()
        ctx.answer = await runner.llm("?")
        return ctx.answer

    @public
    def only_here(self, payload):
        return b"first"

    @property
    def size(self):
        return self.storage["size"]

    @size.setter
    def size(self, value):
        self.storage["size"] = value


@actor
class Second:
    @public
    def read(self, payload):  # expect: ambiguous-handler
        return b"second"

    @public
    def write(self, payload):
        return b"second"

    @public
    @runner.continuation
    async def ask(self, msg):  # expect: ambiguous-handler
        ctx = capture()
        ctx.answer = await runner.llm("?")
        return ctx.answer

    def _private(self, payload):
        return b"second"

    @property
    def size(self):
        return 2


def write(p):
    return First().write(p)


def ask(p):
    return First().ask(p)

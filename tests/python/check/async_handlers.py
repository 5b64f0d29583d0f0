"""A coroutine is no result."""

from cowboy_sdk import actor, capture, public, runner


@actor
class Agent:  # expect: no-init
    @public
    async def ask(self, payload):  # expect: async-handler
        return b""

    @public
    @runner.continuation
    async def right(self, msg):
        ctx = capture()
        ctx.answer = await runner.llm("?")
        return ctx.answer

    @public
    @runner.continuation
    async def idle(self, msg):  # expect: continuation-form
        return b""


async def fetch(payload):  # expect: async-handler
    return b""

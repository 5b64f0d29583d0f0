"""The capture comes back under the name `ctx`."""

from cowboy_sdk import actor, capture, public, runner
from cowboy_sdk import capture as keep


@actor
class Agent:  # expect: no-init
    @public
    @runner.continuation
    async def renamed(self, msg):
        state = capture()  # expect: capture-name
        state.prompt = msg
        answer = await runner.llm(state.prompt)
        return [state.prompt, answer.text]

    @public
    @runner.continuation
    async def unused(self, msg):
        state = capture()
        state.prompt = msg
        answer = await runner.llm(state.prompt)
        return answer.text

    @public
    @runner.continuation
    async def missing(self, msg):
        """Asks."""
        answer = await runner.llm("?")  # expect: capture-name
        return answer.text

    @public
    @runner.continuation
    async def at_once(self, msg):
        answer = await runner.llm("?")
        return answer.text

    @public
    @runner.continuation
    async def alias(self, msg):
        ctx = keep()
        ctx.prompt = msg
        answer = await runner.llm(ctx.prompt)
        return [ctx.prompt, answer.text]

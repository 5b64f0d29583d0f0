# Raises in the second part of a continuation: the receipt of the first part is not touched.
# expect: ok
# handler: ask
# payload: a0
# value: 10cby
from cowboy_sdk import actor, capture, public, runner


@actor
class Agent:
    @public
    @runner.continuation
    async def ask(self, payload):
        ctx = capture()
        ctx.prompt = "hello"
        answer = await runner.llm(ctx.prompt)
        raise ValueError("in the second part\x1b[31m")

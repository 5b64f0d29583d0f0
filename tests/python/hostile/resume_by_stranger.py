# A stranger calls the second part of a continuation with a cid that is open.
# expect: PermissionDeniedError
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
        self.storage["answer"] = answer.text
        return b"done"

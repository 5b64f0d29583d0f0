# Captures more than 64 KiB.
# expect: ContinuationSizeLimitError
# value: 10cby
from cowboy_sdk import actor, capture, public, runner


@actor
class Agent:
    @public(decode="raw")
    @runner.continuation
    async def ask(self, payload):
        ctx = capture()
        ctx.prompt = "h" * 66_000
        answer = await runner.llm("hello")
        return ctx.prompt.encode()


def attack(payload):
    return Agent().ask(b"")

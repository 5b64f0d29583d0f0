# Captures a function.
# expect: CaptureTypeError
# value: 10cby
from cowboy_sdk import actor, capture, public, runner


@actor
class Agent:
    @public(decode="raw")
    @runner.continuation
    async def ask(self, payload):
        ctx = capture()
        ctx.prompt = print
        answer = await runner.llm("hello")
        return b"done"


def attack(payload):
    return Agent().ask(b"")

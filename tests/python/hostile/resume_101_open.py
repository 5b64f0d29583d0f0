# Opens 101 continuations: the SDK allows 100.
# expect: ContinuationCountLimitError
# value: 1000cby
import pvm_host
from cowboy_sdk import actor, capture, public, runner


@actor
class Agent:
    @public(decode="raw")
    @runner.continuation
    async def ask(self, payload):
        ctx = capture()
        ctx.prompt = "hello"
        answer = await runner.llm(ctx.prompt)
        return b"done"


def fill(payload):
    pvm_host.set_state(b"__continuation_count", (99).to_bytes(4, "big"))
    Agent().ask(b"")
    return b"filled"


def attack(payload):
    return Agent().ask(b"")

# The actor resumes itself by a timer, with a cid that was never opened.
# expect: ok scheduled
# value: 10cby
import pvm_host
from cowboy_sdk import actor, capture, codec, public, runner


@actor
class Agent:
    @public
    @runner.continuation
    async def ask(self, payload):
        ctx = capture()
        ctx.prompt = "hello"
        answer = await runner.llm(ctx.prompt)
        return b"done"


def attack(payload):
    reply = codec.encode({"cid": "77" * 32, "result": "forged", "reply_handler": "ask__resume"})
    envelope = codec.encode({"_handler": "ask__resume", "_payload": reply})
    pvm_host.schedule_timer(pvm_host.current_block() + 1, envelope)
    return b"scheduled"

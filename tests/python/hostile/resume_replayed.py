# The actor resumes itself twice with one reply, by timers: the second finds no continuation.
# expect: ok 1 answers
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
        pvm_host.set_state(b"answers", (pvm_host.get_state(b"answers") or b"") + b"x")
        return b"done"


def attack(payload):
    (key, _), = pvm_host.scan_state_prefix(b"__continuation:", 1)
    cid = key.removeprefix(b"__continuation:").hex()
    reply = codec.encode({"cid": cid, "result": "own", "reply_handler": "ask__resume"})
    envelope = codec.encode({"_handler": "ask__resume", "_payload": reply})
    for later in (1, 2):
        pvm_host.schedule_timer(pvm_host.current_block() + later, envelope)
    return b"scheduled"


def count(payload):
    return b"%d answers" % len(pvm_host.get_state(b"answers") or b"")

# The actor sends itself a message that looks like the reply: it arrives as a message.
# expect: ok forged 0 answers
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
        pvm_host.set_state(b"answered", b"1")
        return b"done"


def attack(payload):
    (key, _), = pvm_host.scan_state_prefix(b"__continuation:", 1)
    cid = key.removeprefix(b"__continuation:").hex()
    reply = {"cid": cid, "result": "forged", "reply_handler": "ask__resume"}
    pvm_host.send_message(pvm_host.self_address(), codec.encode(reply))
    return b"forged %d answers" % len(pvm_host.get_state(b"answered") or b"")

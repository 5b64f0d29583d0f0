# Opens the same continuation twice in one transaction: both have one cid and one record.
# expect: ok 1 records, count 1
# value: 10cby
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


def attack(payload):
    agent = Agent()
    agent.ask(b"")
    agent.ask(b"")
    records = len(pvm_host.scan_state_prefix(b"__continuation:", 100))
    count = int.from_bytes(pvm_host.get_state(b"__continuation_count"), "big")
    return f"{records} records, count {count}".encode()

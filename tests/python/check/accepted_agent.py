"""A complete agent: nothing is reported."""

from cowboy_sdk import OWNER, actor, callable_by, capture, codec, deferred, public, runner, send

LIMIT = 3


@actor
class Agent:
    @public
    def init(self, payload):
        self.storage["calls"] = 0

    @public
    @runner.continuation(timeout_blocks=30, guard_keys=["calls"])
    async def chat(self, msg):
        ctx = capture()
        if not msg:
            return b"nothing to say"
        ctx.prompt = msg["prompt"]
        first = await runner.llm(ctx.prompt, temperature=0.2, max_tokens=100)
        ctx.first = first.text
        second = await runner.llm(f"Shorten: {ctx.first}")
        calls = self.storage["calls"] + 1
        self.storage["calls"] = calls
        self.storage[f"reply:{calls}"] = second.text
        return [part for part in (ctx.first, second.text) if part][:LIMIT]

    @callable_by(OWNER)
    @deferred
    def tell(self, payload):
        self._tell(payload["to"])

    @public
    def handle_message(self, payload):
        self.storage["last"] = codec.encode(payload)

    def handle_timer(self, payload):
        self.storage["ticks"] = self.storage.get("ticks", 0) + 1

    def _tell(self, to):
        send(to, {"calls": self.storage["calls"]})


def _a():
    return Agent()


def init(p):
    return _a().init(p)


def chat(p):
    return _a().chat(p)


def chat__resume(p):
    return _a().chat__resume(p)


def tell(p):
    return _a().tell(p)

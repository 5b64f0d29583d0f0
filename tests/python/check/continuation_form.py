"""What cannot be compiled as a continuation, or cannot take the reply."""

from cowboy_sdk import actor, bounded_loop, capture, deferred, public, reentrancy_guard, runner


@actor
class Agent:  # expect: no-init
    @public
    @runner.continuation
    def plain(self, msg):  # expect: continuation-form
        return b""

    @public
    @runner.continuation  # expect: continuation-form
    @bounded_loop(3)
    async def bounded(self, msg):
        await runner.llm("?")

    @public
    @reentrancy_guard
    @runner.continuation  # expect: continuation-form
    async def guarded(self, msg):
        await runner.llm("?")

    @runner.continuation
    @deferred
    @public
    async def tagged(self, msg):
        await runner.llm("?")

    @public
    @runner.continuation
    async def two(self, first, second):  # expect: continuation-form
        await runner.llm("?")

    @public
    @runner.continuation
    async def only(self, msg, /):  # expect: continuation-form
        await runner.llm("?")

    @public
    @runner.continuation
    async def copied(self, msg):
        ctx = capture()
        fast = {"max_tokens": 5}
        ctx.a = await runner.llm("?", **({} if msg else fast))  # expect: continuation-form
        ctx.b = await runner.llm("?", temperature=(zero := 0))  # expect: continuation-form
        await runner.llm("?", **({} | {"stop": ["."]}), temperature=(0 if ctx.b else 1))

    @runner.continuation
    async def _started_by_itself(self, first, second):
        ctx = capture()
        ctx.second = second
        await runner.llm(first)
        return ctx.second

    @public
    @actor.continuation()  # expect: continuation-form
    async def asked(self, msg):
        await runner.llm("?")

    @public
    @runner.continuation
    async def text(self, msg):
        ctx = capture()
        ctx.prompt = """one
two"""  # expect: continuation-form
        await runner.llm(ctx.prompt)

    @public
    @runner.continuation
    async def commented(self, msg):
        ctx = capture()
# not indented  # expect: continuation-form
        await runner.llm("?")


@runner.continuation
async def outside(payload):  # expect: continuation-form
    await runner.llm("?")

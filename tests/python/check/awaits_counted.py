"""At most eight awaits."""

from cowboy_sdk import actor, capture, public, runner


@actor
class Agent:  # expect: no-init
    @public
    @runner.continuation
    async def eight(self, msg):
        ctx = capture()
        ctx.a = await runner.llm("1")
        ctx.a = await runner.llm("2")
        ctx.a = await runner.llm("3")
        ctx.a = await runner.llm("4")
        ctx.a = await runner.llm("5")
        ctx.a = await runner.llm("6")
        ctx.a = await runner.llm("7")
        ctx.a = await runner.llm("8")
        return ctx.a

    @public
    @runner.continuation
    async def ten(self, msg):
        ctx = capture()
        ctx.a = await runner.llm("1")
        ctx.a = await runner.llm("2")
        ctx.a = await runner.llm("3")
        ctx.a = await runner.llm("4")
        ctx.a = await runner.llm("5")
        ctx.a = await runner.llm("6")
        ctx.a = await runner.llm("7")
        ctx.a = await runner.llm("8")
        ctx.a = await runner.llm("9")  # expect: too-many-awaits
        ctx.a = await runner.llm("10")
        return ctx.a

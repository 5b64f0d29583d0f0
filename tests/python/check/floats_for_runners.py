"""Numbers that only runners get."""

from cowboy_sdk import actor, capture, public, runner

WARM = 0.7


@actor
class Agent:  # expect: no-init
    @public
    @runner.continuation
    async def ask(self, msg):
        ctx = capture()
        cold = 0.1
        options = {"top_p": 0.9}
        ctx.a = await runner.llm("?", temperature=cold, **options)
        ctx.b = await runner.llm("?", temperature=0.5, options={"top_p": 1 / 3})
        ctx.c = await runner.llm("?", temperature=WARM)
        ctx.d = ctx.c.text * 0.5  # expect: float
        return ctx.d

    @public
    @runner.continuation
    async def ask_again(self, msg):
        ctx = capture()
        cold: float = 0.1
        kept: float = 0.3  # expect: float
        options: dict = {"top_p": 0.9}
        ctx.kept = kept
        ctx.a = await runner.llm("?", temperature=cold, **options)
        return ctx.kept

"""A return between two awaits leaves the record in the store."""

from cowboy_sdk import actor, capture, public, runner


@actor
class Agent:  # expect: no-init
    @public
    @runner.continuation
    async def ask(self, msg):
        ctx = capture()
        if not msg:
            return b"before: there is no record yet"
        ctx.a = await runner.llm("?")
        if not ctx.a.text:
            return b"between"  # expect: open-continuation
        ctx.b = await runner.llm("?")
        if not ctx.b.text:
            return b"after: the record is deleted"
        return [(lambda: part)() for part in (ctx.a.text, ctx.b.text)]

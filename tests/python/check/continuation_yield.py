"""A continuation cannot be a generator."""

from cowboy_sdk import actor, capture, public, runner


@actor
class Agent:  # expect: no-init
    @public
    @runner.continuation
    async def ask(self, msg):
        def parts():
            yield 1  # expect: continuation-yield

        ctx = capture()
        ctx.parts = list(parts())
        ctx.a = await runner.llm("?")
        return list(part for part in ctx.parts)

    def _parts(self):
        yield 1

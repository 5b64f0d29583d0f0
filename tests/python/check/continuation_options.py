"""Options must be written out."""

from cowboy_sdk import actor, capture, public, runner

BLOCKS = 30
KEYS = ["a"]


@actor
class Agent:  # expect: no-init
    @public
    @runner.continuation(timeout_blocks=BLOCKS)  # expect: decorator-arguments
    async def a(self, msg):
        await runner.llm("?")

    @public
    @runner.continuation(timeout_blocks=True)  # expect: decorator-arguments
    async def b(self, msg):
        await runner.llm("?")

    @public
    @runner.continuation(guard_keys=KEYS)  # expect: decorator-arguments
    async def c(self, msg):
        await runner.llm("?")

    @public
    @runner.continuation(30)  # expect: decorator-arguments
    async def d(self, msg):
        await runner.llm("?")

    @public
    @runner.continuation(timeout=30)  # expect: decorator-arguments
    async def e(self, msg):
        await runner.llm("?")

    @public
    @runner.continuation(timeout_blocks=-1, guard_keys=("a", b"b"))
    async def f(self, msg):
        await runner.llm("?")

    @public
    @runner.continuation(guard_keys=None)
    async def g(self, msg):
        await runner.llm("?")

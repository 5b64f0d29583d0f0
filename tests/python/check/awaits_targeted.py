"""Every await asks runners for a job."""

from cowboy_sdk import ActorRef, actor, capture, public, runner
from cowboy_sdk.runner import llm

ORACLE = ActorRef(b"\x01" * 20)


@actor
class Agent:  # expect: no-init
    @public
    @runner.continuation
    async def ask(self, msg):
        ctx = capture()
        ctx.a = await runner.http("https://example.org")
        ctx.b = await runner.mcp("calendar", "today")
        ctx.c = await llm("?")
        ctx.d = await self._step(msg)  # expect: await-target, lost-local
        ctx.e = await ORACLE.async_price("ETH")  # expect: await-target
        ctx.f = await runner.agent("model", "?")  # expect: not-on-devnet
        await ctx.f  # expect: await-target
        return b""

    async def _step(self, msg):
        return b""

"""The SDK splits a continuation only at its own statements."""

from cowboy_sdk import TaskGroup, actor, capture, public, runner
from cowboy_sdk import JobFailed


@actor
class Agent:  # expect: no-init
    @public
    @runner.continuation
    async def ask(self, msg):
        ctx = capture()
        if msg:
            ctx.a = await runner.llm("?")  # expect: await-place
        for _ in range(3):
            ctx.b = await runner.llm("?")  # expect: await-place
        try:
            ctx.c = await runner.llm("?")  # expect: await-place
        except JobFailed:
            pass
        ctx.d = str(await runner.llm("?"))  # expect: await-place
        text: str = await runner.llm("?")  # expect: await-place
        async with TaskGroup() as group:  # expect: await-place
            group.create_task(runner.llm("?"))
        ctx.e = await runner.llm("?")
        await runner.http("https://example.org")
        return await runner.llm(text)  # expect: await-place, lost-local

    @public
    @runner.continuation
    async def nested(self, msg):
        ctx = capture()

        async def inner():
            await runner.llm("?")  # expect: await-place

        ctx.a = await runner.llm("?")
        return [await runner.llm("?") for _ in range(2)]  # expect: await-place

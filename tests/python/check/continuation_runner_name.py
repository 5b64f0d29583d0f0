"""The SDK's code uses the name `runner`."""

import cowboy_sdk as cb
from cowboy_sdk import runner as jobs


@cb.actor
class Agent:  # expect: no-init
    @cb.public
    @jobs.continuation  # expect: continuation-form
    async def ask(self, msg):
        ctx = cb.capture()
        ctx.a = await jobs.llm("?")
        return ctx.a

    @cb.public
    @cb.runner.continuation  # expect: continuation-form
    async def ask_again(self, msg):
        ctx = cb.capture()
        ctx.a = await cb.runner.llm("?")
        return ctx.a


runner = jobs


@cb.actor
class Client:
    @cb.public
    @cb.runner.continuation
    async def other_name(self, msg):
        ctx = cb.capture()
        client = jobs
        ctx.a = await client.llm("?")
        ctx.text = ctx.a.text
        ctx.b = await client.llm("?")
        return [ctx.text, ctx.b.text]

    @cb.public
    @runner.continuation
    async def taken(self, msg):
        ctx = cb.capture()
        runner = msg["runner"]
        ctx.a = await jobs.llm(runner)  # expect: continuation-form
        runner = ctx.a.text
        return runner

    @cb.public
    @runner.continuation
    async def given(self, runner):
        ctx = cb.capture()
        ctx.a = await jobs.llm("?")  # expect: continuation-form
        return ctx.a.text

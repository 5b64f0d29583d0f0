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

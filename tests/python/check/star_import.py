"""Names from `import *`."""

from cowboy_sdk import *


@actor
class Counter:  # expect: no-init
    @public
    def add(self, payload):
        send(payload, b"")  # expect: impure-send

    def take(self, payload):  # expect: not-public
        return payload

    @public
    @runner.continuation
    async def ask(self, msg):
        ctx = capture()
        ctx.answer = await runner.llm(msg)
        return [ctx.answer.text, call.__name__]


def call(payload):
    return payload

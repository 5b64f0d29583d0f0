"""A continuation has the names that the module had when it was compiled."""

from cowboy_sdk import actor, capture, public, runner

LIMIT = 3


@actor
class Agent:  # expect: no-init
    @public
    @runner.continuation
    async def ask(self, msg):
        ctx = capture()
        ctx.limit = LIMIT
        answer = await runner.llm("?")
        self.storage["kind"] = Agent.__name__  # expect: late-name
        return shorten(answer.text)  # expect: late-name

    @public
    def plain(self, payload):
        return shorten(payload)


def shorten(text):
    return text[:LIMIT]

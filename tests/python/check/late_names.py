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
    @runner.continuation
    async def annotated(self, msg):
        ctx = capture()

        def cut(text: Text) -> Text:
            short: Text = text[:LIMIT]
            return short

        ctx.prompt = cut("a prompt")
        answer = await runner.llm(ctx.prompt)
        cut = lambda text: shorten(text)  # expect: late-name
        return cut(answer.text)

    @public
    def plain(self, payload):
        return shorten(payload)


class Text(str):
    pass


def shorten(text):
    return text[:LIMIT]

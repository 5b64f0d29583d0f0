"""Variables that do not outlive an await."""

from cowboy_sdk import actor, capture, public, runner

SUFFIX = "!"


@actor
class Agent:  # expect: no-init
    @public
    @runner.continuation
    async def ask(self, payload):
        ctx = capture()
        prompt = payload["prompt"]
        ctx.prompt = prompt
        count = len(prompt)
        ctx.a = await runner.llm(prompt)
        ctx.b = await runner.llm(prompt)  # expect: lost-local
        text = ctx.b.text
        longer = [len(text) for text in (ctx.a.text, ctx.b.text)]
        size = max(longer, key=lambda length: length)
        return [text, size, count, SUFFIX]  # expect: lost-local

    @public
    @runner.continuation
    async def reply(self, msg):
        ctx = capture()
        ctx.text = msg["text"]
        answer = await runner.llm(ctx.text)
        return [answer.text, msg["text"]]  # expect: lost-local

    @public
    @runner.continuation
    async def branches(self, payload):
        ctx = capture()
        short = await runner.llm("?")
        if short.text:
            long = short.text * 2
        else:
            long = ""
        ctx.long = long
        last = await runner.llm(long)
        return [ctx.long, last.text, long]  # expect: lost-local

    @public
    @runner.continuation
    async def again(self, payload):
        ctx = capture()
        text = "first"
        await runner.llm(text)
        text = "second"
        self.storage["text"] = text
        return text.upper()

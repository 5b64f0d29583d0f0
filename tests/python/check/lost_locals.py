"""Variables that do not outlive an await."""

import json

from cowboy_sdk import actor, capture, public, runner

SUFFIX = "!"
LAST = None


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
    async def named_as_others(self, payload):
        ctx = capture()
        id = payload["id"]
        SUFFIX = payload["suffix"]
        ctx.kinds = [type for type in payload["kinds"]]
        ctx.last = max(ctx.kinds, key=lambda hash: hash)
        answer = await runner.llm(str(id))
        kind = type(answer).__name__
        return [id, kind + SUFFIX, hash(kind)]  # expect: lost-local, lost-local

    @public
    @runner.continuation
    async def bound_in_other_ways(self, payload):
        import json

        ctx = capture()
        match payload:
            case {"words": words, **others}:
                ctx.long = [word for word in words if (size := len(word)) > 2]
                ctx.kept = json.dumps([size, *others])
        await runner.llm("?")
        return [json.loads(ctx.kept), size, others]  # expect: lost-local, lost-local

    @public
    @runner.continuation
    async def of_the_module(self, payload):
        ctx = capture()
        await runner.llm("?")
        global LAST
        LAST = payload  # expect: lost-local, lost-state
        await runner.llm("?")
        return LAST

    @public
    @runner.continuation
    async def again(self, payload):
        ctx = capture()
        text = "first"
        await runner.llm(text)
        text = "second"
        self.storage["text"] = text
        return text.upper()

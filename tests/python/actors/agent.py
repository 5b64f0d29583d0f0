"""An agent of usual size: several continuations, and a timer that begins one of them."""

from cowboy_sdk import actor, capture, deferred, public, runner, runtime, timer


@actor
class Agent:
    @public
    @deferred
    def begin(self, delay):
        timer.schedule(runtime.get_block_height() + delay, b"", handler="wake")

    @timer
    def wake(self, payload):
        self.storage["awake"] = runtime.get_block_height()

    @public
    @runner.continuation
    async def greet(self, name):
        ctx = capture()
        ctx.answer = await runner.llm("Greet " + name)
        self.storage["greeting"] = ctx.answer.text

    @public
    @runner.continuation
    async def summarize(self, text):
        ctx = capture()
        ctx.answer = await runner.llm("Summarize " + text)
        self.storage["summary"] = ctx.answer.text

    @public
    @runner.continuation
    async def translate(self, text):
        ctx = capture()
        ctx.draft = await runner.llm("Translate " + text)
        ctx.draft_text = ctx.draft.text
        ctx.final = await runner.llm("Correct " + ctx.draft_text)
        self.storage["translation"] = ctx.final.text

    @public
    @runner.continuation
    async def look_up(self, url):
        ctx = capture()
        ctx.page = await runner.http(url)
        ctx.page_text = ctx.page.text
        ctx.answer = await runner.llm("Look up " + ctx.page_text)
        self.storage["page"] = ctx.answer.text

    @public
    @runner.continuation
    async def judge(self, text):
        ctx = capture()
        ctx.first = await runner.llm("Judge " + text)
        ctx.first_text = ctx.first.text
        ctx.second = await runner.llm("Judge again " + ctx.first_text)
        self.storage["verdict"] = [ctx.first_text, ctx.second.text]

"""An analyst: continuations with one await, guards, and jobs that fail."""

from cowboy_sdk import actor, capture, public, runner


@actor
class Analyst:
    @public
    @runner.continuation
    async def ask(self, question):
        ctx = capture()
        ctx.question = question
        ctx.answer = await runner.llm("Answer: " + question)
        self.storage["answer"] = [ctx.question, ctx.answer.text]
        return {"question": ctx.question, "answer": ctx.answer.text}

    @public
    @runner.continuation(guard_keys=["budget"])
    async def guarded(self, question):
        ctx = capture()
        ctx.answer = await runner.llm("Guarded: " + question)
        self.storage["guarded"] = ctx.answer.text

    @public
    def set_budget(self, budget):
        self.storage["budget"] = budget

    @public
    @runner.continuation
    async def hopeless(self, question):
        ctx = capture()
        ctx.answer = await runner.llm("Hopeless: " + question, timeout_blocks=10)
        self.storage["hope"] = ctx.answer.text

    @public
    @runner.continuation
    async def broken(self, question):
        ctx = capture()
        ctx.answer = await runner.llm("Broken: " + question)
        self.storage["lost"] = ctx.answer.text
        raise ValueError("after " + ctx.answer.text)

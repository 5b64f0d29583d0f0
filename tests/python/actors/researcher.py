"""A researcher: a continuation with three awaits, which carries values over each of them."""

from cowboy_sdk import actor, capture, public, runner


@actor
class Researcher:
    @public
    @runner.continuation
    async def research(self, topic):
        ctx = capture()
        ctx.topic = topic
        ctx.steps = ["begun"]
        ctx.plan = await runner.llm(
            f"Plan: {topic}", model="small", system_prompt="Be short.", max_tokens=64
        )
        ctx.plan_text = ctx.plan.text
        ctx.steps = ctx.steps + [ctx.plan_text]
        ctx.facts = await runner.llm("Facts: " + ctx.plan_text, model="small", temperature=0)
        ctx.fact_text = ctx.facts.text
        self.storage["half"] = ctx.fact_text
        ctx.verdict = await runner.llm("Verdict: " + ctx.fact_text, timeout_blocks=60)
        self.storage["report"] = ctx.steps + [ctx.fact_text, ctx.verdict.text]
        return self.storage["report"]

"""A classifier: a language model that answers in the shape of a schema."""

import json

from cowboy_sdk import actor, capture, public, runner

SCHEMA = json.dumps(
    {
        "additionalProperties": False,
        "properties": {"label": {"type": "string"}, "sure": {"type": "boolean"}},
        "required": ["label", "sure"],
        "type": "object",
    },
    separators=(",", ":"),
    sort_keys=True,
)


@actor
class Classifier:
    @public
    @runner.continuation
    async def classify(self, text):
        ctx = capture()
        ctx.result = await runner.llm("Classify: " + text, response_schema=SCHEMA)
        self.storage["label"] = ctx.result.value["label"]
        self.storage["sure"] = ctx.result.value["sure"]
        return ctx.result.value

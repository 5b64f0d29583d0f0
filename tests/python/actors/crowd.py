"""A crowd: several jobs of one transaction, as a group of tasks."""

from cowboy_sdk import Retry, SELF, TaskGroup, actor, callable_by, codec, deferred, public, runner
from cowboy_sdk import runtime


@actor
class Crowd:
    @public
    @deferred
    def poll(self, questions):
        group = TaskGroup()
        for question in questions:
            group.create_task(runner.llm(question))
        cid = runtime.keccak256(runtime.get_tx_hash() + b"poll")
        group._submit_all(cid, "collect")
        self.storage["cid"] = cid
        self.storage["delays"] = list(Retry(max_attempts=3))
        return len(group)

    @callable_by(SELF, decode="raw")
    def collect(self, payload):
        reply = codec.decode(payload)
        opinions = self.storage.get("opinions") or []
        self.storage["opinions"] = opinions + [[reply["cid"], reply["result"]]]
        return str(len(opinions) + 1).encode()

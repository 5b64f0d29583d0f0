"""Makes quickstart.json: what the SDK's own host leaves after the quick start.

    python quickstart.py > quickstart.json

Needs cowboy-actor-sdk as in ../../requirements.txt.
"""

import json
import linecache
import pathlib
import sys
import types

from cowboy_sdk import codec, mock_host

source = (pathlib.Path(__file__).parents[1] / "machine/actors/agent.py").read_text()
sys.modules["pvm_host"] = mock_host
mock_host.reset()
linecache.cache["<actor>"] = (len(source), None, source.splitlines(True), "<actor>")
module = sys.modules["actor_main"] = types.ModuleType("actor_main")
exec(compile(source, "<actor>", "exec"), module.__dict__)

mock_host.set_context(sender=b"\x44" * 20)
module.init(b"{}")
module.chat(codec.encode({"message": "Howdy"}))
job = mock_host.get_send_log()[-1]["payload"]
reply = codec.encode({
    "cid": bytes(codec.decode(job)["cid"]).hex(),
    "result": {"text": "Hello, partner!", "model": "stub", "usage": {"in": 3, "out": 4}},
    "reply_handler": "chat__resume",
    "correlation_id": None,
})
mock_host.set_context(sender=b"\x22" * 20)
module.__dict__["_a"]().chat__resume(reply)
store = {key.hex(): value.hex() for key, value in sorted(mock_host._storage.items())}
print(json.dumps({"job": job.hex(), "reply": reply.hex(), "store": store}, indent=1))

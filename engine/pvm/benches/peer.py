"""CPython with the SDK's own host, for comparison: reads lines `NAME TIMES`, runs the calls, and
prints how many seconds they took. `fresh` in a name also runs the module before each call."""

import linecache
import pathlib
import sys
import time
import types

from cowboy_sdk import codec, mock_host

sys.modules["pvm_host"] = mock_host
ACTORS = pathlib.Path(sys.argv[1])


def load(source):
    linecache.cache["<actor>"] = (len(source), None, source.splitlines(True), "<actor>")
    module = sys.modules["actor_main"] = types.ModuleType("actor_main")
    exec(compile(source, "<actor>", "exec"), module.__dict__)
    return module


def calls(name):
    """The source, and what to call in its module, the same as in the bench."""
    kind, _, fresh = name.partition("-")
    source = (ACTORS / f"{kind}.py").read_text()
    if kind == "trivial":
        return source, lambda module: module.ping(b"x"), fresh
    if kind == "counter":
        return source, lambda module: module.inc(b""), fresh
    message = codec.encode({"message": "Howdy"})
    return source, lambda module: module.chat(message), fresh


for line in sys.stdin:
    name, times = line.split()
    source, call, fresh = calls(name)
    mock_host.reset()
    mock_host.set_context(sender=b"\x44" * 20)
    module = load(source)
    if hasattr(module, "init"):
        module.init(b"{}")
    start = time.perf_counter()
    for number in range(int(times)):
        if fresh:
            module = load(source)
        # Another transaction, so that a continuation has another id.
        mock_host.set_context(sender=b"\x44" * 20, tx_hash=number.to_bytes(32, "big"))
        if name.startswith("agent") and number % 50 == 0:
            # An actor has at most a hundred continuations.
            mock_host._storage.clear()
            module.init(b"{}")
        call(module)
    print(time.perf_counter() - start, flush=True)

# Asks for jobs with arguments that make no sense.
# expect: ok \d+ of \d+ refused
# value: 1000cby
# limit: 19000000
# cells: 900000
import pvm_host
from cowboy_sdk import runner

JOBS = (
    ("llm", ["hello"], {"temperature": -1}),
    ("llm", ["hello"], {"temperature": 10**30}),
    ("llm", ["hello"], {"temperature": 1e308}),
    ("llm", ["hello"], {"temperature": 5e-324}),
    ("llm", ["hello"], {"temperature": "hot"}),
    ("llm", ["hello"], {"max_tokens": 10**9}),
    ("llm", ["hello"], {"max_tokens": 0}),
    ("llm", ["hello"], {"max_tokens": -1}),
    ("llm", ["hello"], {"max_tokens": 2**64}),
    ("llm", ["hello"], {"timeout_blocks": 0}),
    ("llm", ["hello"], {"timeout_blocks": 2**64 - 1}),
    ("llm", ["hello"], {"timeout_blocks": True}),
    ("llm", ["hello"], {"seed": 2**128}),
    ("llm", ["hello"], {"model": ""}),
    ("llm", ["hello"], {"model": "\x00" * 1_000}),
    ("llm", ["hello"], {"model": ["a"]}),
    ("llm", [""], {}),
    ("llm", [], {}),
    ("llm", [1], {}),
    ("llm", [b"\xff"], {}),
    ("llm", ["a", "b", "c"], {"prompt": "d"}),
    ("llm", ["hello"], {"unknown": 1}),
    ("http", ["file:///etc/passwd"], {}),
    ("http", [""], {}),
    ("http", ["http://127.0.0.1:1/\r\nHost: x"], {}),
    ("http", ["http://x"], {"method": "GET / HTTP/1.1\r\n"}),
    ("http", ["http://x"], {"headers": {"a\r\nb": "c"}}),
    ("http", ["http://x"], {"headers": {"a": 1}}),
    ("http", ["http://x"], {"headers": [1]}),
    ("http", ["http://x"], {"pointer": "no pointer"}),
    ("http", ["http://x"], {"body": 1}),
    ("mcp", ["", ""], {}),
    ("mcp", ["server"], {}),
    ("mcp", ["server", "tool"], {"a": b"bytes"}),
    ("mcp", ["server", "tool"], {"a": {1: 2}}),
    ("container", ["image"], {}),
    ("", ["hello"], {}),
    ("\x1b[2J", ["hello"], {}),
)


def attack(payload):
    refused, taken = 0, []
    for number, (kind, arguments, named) in enumerate(JOBS):
        try:
            cid = number.to_bytes(32, "big")
            runner.send_message(kind, cid, "on_reply", arguments, named)
            taken.append(f"{kind} {arguments} {named}")
        except Exception:
            refused += 1
    return f"{refused} of {len(JOBS)} refused; taken: {'; '.join(taken)}".encode()

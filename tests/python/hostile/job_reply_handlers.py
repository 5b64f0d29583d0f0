# Names reply handlers that are empty, long, private, and of another actor.
# expect: ok
# value: 100cby
from cowboy_sdk import runner


def attack(payload):
    refused = 0
    for number, name in enumerate(("", "x" * 257, "init", "__class__", "\x00", "attack")):
        try:
            runner.send_message("llm", number.to_bytes(32, "big"), name, ["hello"], {})
        except Exception:
            refused += 1
    return f"{refused} refused".encode()

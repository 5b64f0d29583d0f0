# Asks with a prompt of 900,000 bytes.
# expect: (ok|HostError)
# value: 10cby
# limit: 19000000
# cells: 950000
from cowboy_sdk import runner


def attack(payload):
    runner.send_message("llm", bytes(32), "x", ["a" * 900_000], {})
    return b"asked"

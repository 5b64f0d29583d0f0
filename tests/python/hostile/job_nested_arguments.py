# Asks a tool with arguments nested 250 deep, of CBOR made by hand.
# expect: (HostError|ok)
# value: 10cby
from cowboy_sdk import runner


def attack(payload):
    nest = []
    for _ in range(240):
        nest = [nest]
    runner.send_message("mcp", bytes(32), "x", ["server", "tool"], {"a": nest})
    return b"asked"

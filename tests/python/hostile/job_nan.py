# Asks for a temperature that is not a number.
# expect: (CodecError|HostError)
# value: 10cby
from cowboy_sdk import runner


def attack(payload):
    runner.send_message("llm", bytes(32), "x", ["hello"], {"temperature": float("nan")})

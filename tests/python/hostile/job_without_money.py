# Asks for a job without money.
# expect: HostError: .*money
from cowboy_sdk import runner


def attack(payload):
    runner.send_message("llm", bytes(32), "x", ["hello"], {})

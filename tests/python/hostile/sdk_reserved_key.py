# Writes the SDK's reserved key.
# expect: ValueError: .*__INITIALIZED__
from cowboy_sdk import runtime


def attack(payload):
    runtime.set_state(b"__INITIALIZED__", b"1")
    return b"written"

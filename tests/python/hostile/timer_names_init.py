# Schedules timers whose envelopes name init, a private function and a class.
# expect: ok scheduled, 0 keys
# value: 1cby
import pvm_host
from cowboy_sdk import codec


def init(payload):
    if payload == b"again":
        pvm_host.set_state(b"began", payload)


def _private(payload):
    pvm_host.set_state(b"private", payload)


def attack(payload):
    soon = pvm_host.current_block() + 1
    for name in ("init", "_private", "__class__", "Exception", "x" * 256, "\x1b[2J"):
        envelope = codec.encode({"_handler": name, "_payload": b"again"})
        pvm_host.schedule_timer(soon, envelope)
    return b"scheduled"

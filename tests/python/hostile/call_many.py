# Calls another actor until the cycles end.
# expect: OutOfCycles
# limit: 19000000
import pvm_host


def empty(payload):
    return b""


def attack(payload):
    while True:
        pvm_host.call_actor(payload, "empty", b"", 0)

# Uses much of the native stack at every level of nested calls.
# expect: ok|OutOfCycles
# limit: 19500000
import pvm_host


def attack(payload):
    nest = ()
    for _ in range(150_000):
        nest = (nest,)
    nest = None
    target, rest = payload[:20], payload[20:]
    return pvm_host.call_actor(target, "attack", rest, 0) if target else b"bottom"

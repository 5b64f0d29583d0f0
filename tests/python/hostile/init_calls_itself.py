# Asks itself in init.
# expect: deploy: HostError: an actor cannot be entered twice
import pvm_host


def init(payload):
    return pvm_host.call_actor(pvm_host.self_address(), "attack", b"", 0)

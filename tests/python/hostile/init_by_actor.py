# Calls init of itself by another actor's call_actor.
# expect: ok .*InitOnlyOnce
import pvm_host


def init(payload):
    return b"begun"


def attack(payload):
    try:
        return pvm_host.call_actor(payload, "init", b"", 0)
    except pvm_host.HostError as error:
        return str(error).encode()

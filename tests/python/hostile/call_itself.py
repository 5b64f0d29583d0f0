# Calls itself.
# expect: ok 5 an actor cannot be entered twice
import pvm_host


def attack(payload):
    try:
        return pvm_host.call_actor(pvm_host.self_address(), "attack", b"", 0)
    except pvm_host.HostError as error:
        return f"{error.code} {error}".encode()

# Calls another actor, which calls the first one.
# expect: ok 5 an actor cannot be entered twice
import pvm_host


def attack(payload):
    target, rest = payload[:20], payload[20:]
    try:
        return pvm_host.call_actor(target, "attack", rest, 0)
    except pvm_host.HostError as error:
        return f"{error.code} {error}".encode()

# Calls a chain of 33 actors.
# expect: ok (5 calls are nested too deep|1 OutOfCycles)
# limit: 19000000
import pvm_host


def attack(payload):
    target, rest = payload[:20], payload[20:]
    if not target:
        return b"bottom"
    try:
        return pvm_host.call_actor(target, "attack", rest, 0)
    except pvm_host.HostError as error:
        return f"{error.code} {error}".encode()

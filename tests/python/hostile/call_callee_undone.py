# Calls an actor that stores, sends, pays and schedules, and then fails: nothing of it is left.
# expect: ok 6 None
# value: 1cby
import pvm_host


def spoil(payload):
    pvm_host.set_state(b"spoiled", b"1")
    pvm_host.emit_event("spoiled", b"")
    raise ValueError("spoiled")


def spoiled(payload):
    return repr(pvm_host.get_state(b"spoiled")).encode()


def attack(payload):
    try:
        pvm_host.call_actor(payload, "spoil", b"", 1_000_000)
    except pvm_host.HostError as error:
        code = str(error.code).encode()
    return code + b" " + pvm_host.call_actor(payload, "spoiled", b"", 1_000_000)

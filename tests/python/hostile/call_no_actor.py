# Calls an address without an actor, the zero address and the dispatcher.
# expect: ok 3 3 3
import pvm_host


def attack(payload):
    codes = []
    for target in (b"\x77" * 20, bytes(20), bytes(19) + b"\x02"):
        try:
            pvm_host.call_actor(target, "attack", b"", 0)
        except pvm_host.HostError as error:
            codes.append(str(error.code))
    return " ".join(codes).encode()

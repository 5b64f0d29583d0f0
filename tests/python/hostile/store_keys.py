# Stores under empty keys, keys at the limit, keys beyond it, and keys with NUL bytes.
# expect: ok 3 stored, 3 refused
# cells: 400000
import pvm_host


def attack(payload):
    stored = refused = 0
    for key in (b"", bytes(256), b"\x00\xff", bytes(257), bytes(10_000), bytes(200_000)):
        try:
            pvm_host.set_state(key, b"v")
            stored += pvm_host.get_state(key) == b"v"
        except pvm_host.HostError:
            refused += 1
    return f"{stored} stored, {refused} refused".encode()

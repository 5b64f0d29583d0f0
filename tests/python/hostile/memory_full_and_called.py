# Fills memory to the last byte, then calls host functions.
# expect: (ok|MemoryError|Stopped)
# limit: 19000000
import pvm_host

kept = []


def attack(payload):
    size = 1 << 20
    while size:
        try:
            kept.append(bytearray(size))
        except MemoryError:
            size >>= 1
    pvm_host.set_state(b"k", b"v")
    pvm_host.emit_event("full", b"x")
    return pvm_host.get_state(b"k")

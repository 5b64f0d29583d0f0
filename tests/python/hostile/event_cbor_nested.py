# Emits CBOR of 200 nested lists: all who read the block's events read it.
# expect: ok emitted
import pvm_host


def attack(payload):
    pvm_host.emit_event("nest", b"\x81" * 200 + b"\x00")
    return b"emitted"

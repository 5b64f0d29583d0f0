# Emits events whose name and data are at their limits.
# expect: ok emitted
import pvm_host


def attack(payload):
    emitted = pvm_host.emit_event("n" * 256, bytes(4_096))
    return b"emitted" if emitted["emit_id"] > 0 else b""

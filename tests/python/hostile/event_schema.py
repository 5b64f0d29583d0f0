# Emits an event whose schema has the wrong length.
# expect: HostError: schema has 3 bytes, 32 are expected
import pvm_host


def attack(payload):
    pvm_host.emit_event("n", b"", b"abc")

# Emits an event whose name has a byte too many.
# expect: HostError: an event's name has at most 256 bytes
import pvm_host


def attack(payload):
    pvm_host.emit_event("n" * 257, b"")

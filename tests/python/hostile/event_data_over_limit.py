# Emits an event whose data has a byte too many.
# expect: HostError: an event's data has at most 4096 bytes
import pvm_host


def attack(payload):
    pvm_host.emit_event("n", bytes(4_097))

# Emits an event whose name has a lone surrogate.
# expect: UnicodeEncodeError
import pvm_host


def attack(payload):
    pvm_host.emit_event("\ud800", b"")

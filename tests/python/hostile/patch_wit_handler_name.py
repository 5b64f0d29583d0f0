# Passes a handler's name with a lone surrogate to the component's imports.
# expect: (Stopped|Err|UnicodeEncodeError)
import pvm_host


def attack(payload):
    pvm_host._wit.call_actor(bytes(20), "\ud800", b"", 0, 0)
    return b"passed"

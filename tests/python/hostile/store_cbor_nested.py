# Stores CBOR of 200 nested lists, and lets its store be shown.
# expect: ok shown
import pvm_host


def attack(payload):
    pvm_host.set_state(b"nest", b"\x81" * 200 + b"\x00")
    return b"stored"

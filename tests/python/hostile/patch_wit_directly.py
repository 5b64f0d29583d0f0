# Calls the component's own imports with keys that the guest would refuse.
# expect: (Err|TypeError|HostError)
import pvm_host


def attack(payload):
    pvm_host._wit.set_state(b"__INITIALIZED__", b"1")
    return b"written"

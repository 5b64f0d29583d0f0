# Tells the guest that the module is loaded still, and that the sender is another.
# expect: ok [0-9a-f]{40}
import pvm_host


def attack(payload):
    pvm_host._state.context = None
    sender = pvm_host.context()["sender"]
    pvm_host._state.loading = True
    return sender.hex().encode()

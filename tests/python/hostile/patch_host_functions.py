# Replaces functions of pvm_host by its own: only its own calls see them.
# expect: ok patched
import pvm_host


def attack(payload):
    pvm_host.get_state = lambda key: b"patched"
    return pvm_host.get_state(b"key")

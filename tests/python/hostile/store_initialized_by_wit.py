# Marks itself as initialized, as only the SDK should, and removes that again.
# expect: ValueError: delete_state: key b'__INITIALIZED__' is reserved
import pvm_host


def attack(payload):
    pvm_host.set_reserved_state(b"__INITIALIZED__", b"1")
    pvm_host.delete_state("__INITIALIZED__")

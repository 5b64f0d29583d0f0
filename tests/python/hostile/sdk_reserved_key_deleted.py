# Deletes the SDK's reserved key by every way there is.
# expect: (HostError|ValueError)
import pvm_host


def attack(payload):
    for way in (pvm_host._wit.delete_state, pvm_host.delete_reserved_state):
        try:
            way(b"__INITIALIZED__")
        except BaseException as error:
            last = error
    raise last

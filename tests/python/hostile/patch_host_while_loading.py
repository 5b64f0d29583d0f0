# Says that loading is over while it is not, and asks the host.
# expect: deploy: Stopped: the machine stopped the call
import pvm_host

pvm_host._state.loading = False
pvm_host.set_state(b"k", b"v")


def attack(payload):
    return b"loaded"

# Reads a value of a megabyte without end.
# expect: (OutOfCycles|HostError)
# limit: 19000000
# cells: 900000
import pvm_host


def attack(payload):
    pvm_host.set_state(b"key", bytes(890_000))
    while True:
        pvm_host.get_state(b"key")

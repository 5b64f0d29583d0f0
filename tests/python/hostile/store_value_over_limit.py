# Stores a value of a megabyte and a byte.
# expect: HostError: value has 1048577 bytes, at most 1048576
# limit: 19000000
import pvm_host


def attack(payload):
    pvm_host.set_state(b"key", bytes((1 << 20) + 1))

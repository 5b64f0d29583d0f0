# Stores a value of a megabyte, for which no transaction has the cells.
# expect: HostError: the call has used all of its cells
# limit: 19000000
# cells: 900000
import pvm_host


def attack(payload):
    pvm_host.set_state(b"key", bytes(1 << 20))

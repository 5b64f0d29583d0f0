# Reads the store without end.
# expect: OutOfCycles
# limit: 19000000
import pvm_host


def attack(payload):
    read = pvm_host.get_state
    while True:
        read(b"key")

# Hashes a megabyte in the host without end.
# expect: OutOfCycles
# limit: 19000000
import pvm_host


def attack(payload):
    data = bytes(1 << 20)
    while True:
        pvm_host.keccak256(data)

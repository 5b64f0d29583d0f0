# Verifies signatures without end.
# expect: OutOfCycles
# limit: 19000000
import pvm_host


def attack(payload):
    while True:
        pvm_host.verify_signature(2, bytes(32), b"", bytes(64))

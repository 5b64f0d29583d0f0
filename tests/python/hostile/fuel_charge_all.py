# Charges itself 2^64 - 1 cycles.
# expect: OutOfCycles
import pvm_host


def attack(payload):
    pvm_host.charge_gas(2**64 - 1)
    return b"charged"

# Charges itself less than nothing.
# expect: HostError: amount must be from 0
import pvm_host


def attack(payload):
    pvm_host.charge_gas(-1)
    return b"charged"

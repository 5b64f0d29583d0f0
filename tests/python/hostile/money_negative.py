# Transfers less than nothing.
# expect: HostError: amount must be from 0
import pvm_host


def attack(payload):
    pvm_host.transfer_balance(bytes(20), -1)

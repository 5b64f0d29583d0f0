# Transfers more than it has.
# expect: HostError: InsufficientBalance
# value: 1
import pvm_host


def attack(payload):
    pvm_host.transfer_balance(bytes(20), 2)

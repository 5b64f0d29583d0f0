# Transfers 2^128 and 2^10,000.
# expect: ok 3 refused
import pvm_host


def attack(payload):
    refused = 0
    for amount in (2**128, 2**128 - 1, 2**10_000):
        try:
            pvm_host.transfer_balance(bytes(20), amount)
        except pvm_host.HostError:
            refused += 1
    return f"{refused} refused".encode()

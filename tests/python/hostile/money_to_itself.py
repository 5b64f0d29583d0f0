# Transfers all of its money to itself, 1,000 times.
# expect: ok moved
# value: 1cby
import pvm_host


def attack(payload):
    own = pvm_host.self_address()
    for _ in range(1_000):
        pvm_host.transfer_balance(own, 10**9)
    try:
        pvm_host.transfer_balance(own, 10**9 + 1)
    except pvm_host.HostError:
        return b"moved"

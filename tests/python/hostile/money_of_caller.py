# Transfers in the name of its caller, by a context of its own making.
# expect: HostError: InsufficientBalance
import pvm_host


def attack(payload):
    state = pvm_host.context()
    pvm_host._state.context.actor = state["sender"]
    pvm_host.transfer_balance(bytes(20), 1)

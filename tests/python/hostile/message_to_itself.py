# Sends itself a message in each delivery, until its money is gone.
# expect: ok sent
# value: 0.05cby
import pvm_host


def handle_message(payload):
    pvm_host.send_message(pvm_host.self_address(), payload)


def attack(payload):
    handle_message(payload)
    return b"sent"

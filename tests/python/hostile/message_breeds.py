# Sends two messages in each delivery, until its money is gone.
# expect: ok sent
# value: 1cby
import pvm_host


def handle_message(payload):
    for _ in range(2):
        pvm_host.send_message(pvm_host.self_address(), payload)


def attack(payload):
    handle_message(payload)
    return b"sent"

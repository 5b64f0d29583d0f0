# Sends itself 20 messages whose handler never ends.
# expect: ok sent
# value: 1cby
import pvm_host


def handle_message(payload):
    while True:
        pass


def attack(payload):
    for _ in range(20):
        pvm_host.send_message(pvm_host.self_address(), payload)
    return b"sent"

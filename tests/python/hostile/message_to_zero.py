# Sends a message to the zero address.
# expect: ok sent
# value: 1cby
import pvm_host


def attack(payload):
    pvm_host.send_message(bytes(20), b"hello")
    return b"sent"

# Sends itself a message of 900,000 bytes, more than a message may have.
# expect: HostError: the payload of a message has at most 262144 bytes
# value: 1cby
# limit: 19000000
# cells: 950000
import pvm_host


def handle_message(payload):
    pvm_host.emit_event("got", str(len(payload)).encode())


def attack(payload):
    pvm_host.send_message(pvm_host.self_address(), bytes(900_000))
    return b"sent"

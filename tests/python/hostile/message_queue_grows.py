# Fills the queue behind messages that never end, so that tens of thousands wait.
# expect: (ok sent|HostError: too many messages wait)
# value: 20cby
# limit: 12900000
# cells: 960000
import pvm_host


def handle_message(payload):
    while True:
        pass


def stop(payload):
    for _ in range(60):
        pvm_host.send_message(pvm_host.self_address(), payload)
    return b"stopped"


def attack(payload):
    send, nowhere = pvm_host.send_message, b"\x77" * 20
    for _ in range(13_000):
        send(nowhere, b"")
    return b"sent"

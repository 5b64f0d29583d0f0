# Sends 14,000 messages to an address without an actor in one transaction.
# expect: (ok sent|HostError: too many messages wait)
# value: 1cby
# limit: 14000000
# cells: 960000
import pvm_host


def attack(payload):
    send, nowhere = pvm_host.send_message, b"\x77" * 20
    for _ in range(14_000):
        send(nowhere, b"")
    return b"sent"

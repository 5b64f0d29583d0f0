# Sends 14,000 messages, then gives its money away: no delivery can be paid for.
# expect: (ok sent|HostError: too many messages wait)
# value: 1cby
# limit: 14000000
# cells: 960000
import pvm_host


def attack(payload):
    send, to = pvm_host.send_message, pvm_host.self_address()
    for _ in range(14_000):
        send(to, b"")
    pvm_host.transfer_balance(pvm_host.context()["sender"], 10**9)
    return b"sent"

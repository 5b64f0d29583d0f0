# Sends messages to addresses of wrong lengths and types.
# expect: ok 5 refused
import pvm_host


def attack(payload):
    refused = 0
    for target in (b"", bytes(19), bytes(21), "0x" + "00" * 20, None):
        try:
            pvm_host.send_message(target, b"")
        except (TypeError, pvm_host.HostError):
            refused += 1
    return f"{refused} refused".encode()

# Sends messages to the addresses of the system, 0x01 to 0x20.
# expect: ok sent
# value: 1cby
import pvm_host


def attack(payload):
    refused = 0
    for number in range(1, 33):
        try:
            pvm_host.send_message(bytes(19) + bytes([number]), b"hello")
        except pvm_host.HostError:
            refused += 1
    return f"sent, {refused} refused".encode()

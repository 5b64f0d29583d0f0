# Sends a message without the money for its delivery.
# expect: HostError: the actor has 0 CBY and the delivery of a message may cost
import pvm_host


def attack(payload):
    pvm_host.send_message(bytes(20), b"hello")

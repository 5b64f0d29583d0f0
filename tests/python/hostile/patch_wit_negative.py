# Passes a negative amount to the component's imports.
# expect: (Stopped|TypeError|OverflowError|Err|ok)
import pvm_host


def attack(payload):
    wit = pvm_host._wit
    wit.transfer_balance(bytes(20), wit.Amount(-1, -1))
    return b"passed"

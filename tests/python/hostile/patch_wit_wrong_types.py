# Passes values of the wrong types to the component's imports.
# expect: (Stopped|TypeError|AttributeError|OverflowError|Err)
import pvm_host


def attack(payload):
    pvm_host._wit.transfer_balance(object(), -1)
    return b"passed"

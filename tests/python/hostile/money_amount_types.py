# Transfers amounts that are floats, texts, bools and ints that lie.
# expect: ok 3 refused
# value: 5
import pvm_host


class Liar(int):
    def __index__(self):
        return 10**30

    def __rshift__(self, bits):
        return 10**30

    def __le__(self, other):
        return True

    __ge__ = __le__


def attack(payload):
    refused = 0
    for amount in (1.0, "1", None):
        try:
            pvm_host.transfer_balance(bytes(20), amount)
        except TypeError:
            refused += 1
    pvm_host.transfer_balance(bytes(20), True)
    pvm_host.transfer_balance(bytes(20), Liar(1))
    return f"{refused} refused".encode()

# Runs out inside a host function, and tries to catch that.
# expect: OutOfCycles
import pvm_host


def attack(payload):
    try:
        pvm_host.charge_gas(10_000_000)
    except BaseException:
        pass
    return b"caught"

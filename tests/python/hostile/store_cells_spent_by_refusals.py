# Stores more than it has cells for, catches the refusals, and goes on.
# expect: (OutOfCycles|MemoryError|Stopped)
import pvm_host


def attack(payload):
    while True:
        try:
            pvm_host.set_state(b"key", bytes(200_000))
        except pvm_host.HostError:
            pass

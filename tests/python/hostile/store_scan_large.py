# Scans 30 values that together are half of its memory.
# expect: (Stopped|MemoryError|ok|HostError)
# limit: 19000000
import pvm_host


def fill(payload):
    pvm_host.set_state(b"large" + payload, bytes(800_000))


def attack(payload):
    return str(len(pvm_host.scan_state_prefix(b"large", 1_000))).encode()

# Deletes and adds keys while it goes through a scan.
# expect: ok 10 5
import pvm_host


def attack(payload):
    for number in range(10):
        pvm_host.set_state(b"k%d" % number, b"v")
    seen = 0
    for key, _ in pvm_host.scan_state_prefix(b"k", 100):
        seen += 1
        if seen % 2:
            pvm_host.delete_state(key)
    return f"{seen} {len(pvm_host.scan_state_prefix(b'k', 100))}".encode()

# Stores 1,100 entries and scans them: a scan ends at 1,000.
# expect: ok 1000 1000 0 1000
# limit: 19000000
import pvm_host


def attack(payload):
    for number in range(1_100):
        pvm_host.set_state(b"%05d" % number, b"")
    limits = (1_000, 2**64 - 1, 0, 1_001)
    counts = [len(pvm_host.scan_state_prefix(b"", limit)) for limit in limits]
    return " ".join(map(str, counts)).encode()

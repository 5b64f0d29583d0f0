# Verifies signatures with keys, schemes and lengths that make no sense.
# expect: ok \d+ refused, 0 valid
import pvm_host


def attack(payload):
    refused = valid = 0
    small = bytes([1]) + bytes(31)
    for arguments in (
        (0, bytes(32), b"", bytes(64)),
        (2, bytes(32), b"", bytes(64)),
        (2, small, b"x", small + bytes(32)),
        (2, b"\xff" * 32, b"", b"\xff" * 64),
        (2, bytes(31), b"", bytes(64)),
        (2, bytes(32), b"", bytes(65)),
        (2**64 - 1, b"", b"", b""),
    ):
        try:
            valid += pvm_host.verify_signature(*arguments)
        except pvm_host.HostError:
            refused += 1
    return f"{refused} refused, {valid} valid".encode()

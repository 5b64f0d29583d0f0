# Creates tokens with absurd names, decimals and amounts.
# expect: ok \d+ refused
import pvm_host


def attack(payload):
    refused = 0
    for arguments in (
        ("x" * 1_000_000, "X", 18, 1),
        ("x", "", 2**64 - 1, 2**128 - 1),
        ("\x1b[2J", "\x00", 0, 0, 0),
        ("x", "X", 18, 2**128 - 1, 1),
        (b"\xff\xfe", b"\xff", 18, 1),
        ("x", "X", -1, 1),
        ("x", "X", 18, 2**128),
        ("x", "X", 18, 1, None, bytes(20), "u" * 1_000_000),
    ):
        try:
            pvm_host.token_create(*arguments)
        except pvm_host.HostError:
            refused += 1
    return f"{refused} refused".encode()

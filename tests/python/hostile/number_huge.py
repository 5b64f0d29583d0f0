# Passes numbers of 10,000 digits to every function that takes numbers.
# expect: ok 6 refused
import pvm_host


def attack(payload):
    huge, refused = 10**9_000, 0
    for function, arguments in (
        (pvm_host.charge_gas, (huge,)),
        (pvm_host.schedule_timer, (huge, b"")),
        (pvm_host.scan_state_prefix, (b"", huge)),
        (pvm_host.call_actor, (bytes(20), "x", b"", huge)),
        (pvm_host.verify_signature, (huge, bytes(32), b"", bytes(64))),
        (pvm_host.extend_timer, (bytes(32), huge)),
    ):
        try:
            function(*arguments)
        except pvm_host.HostError:
            refused += 1
    return f"{refused} refused".encode()

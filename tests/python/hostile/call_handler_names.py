# Calls handlers whose names are empty, long and odd.
# expect: ok 5 refused
import pvm_host


def attack(payload):
    refused = 0
    for name in ("", "x" * 257, "\x00", "__init__", "attack\n"):
        try:
            pvm_host.call_actor(payload, name, b"", 0)
        except pvm_host.HostError:
            refused += 1
    return f"{refused} refused".encode()

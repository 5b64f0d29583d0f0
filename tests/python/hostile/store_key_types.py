# Stores under keys of wrong types, and of types that lie.
# expect: ok 5 refused
import pvm_host


class Key(bytes):
    def __len__(self):
        return 1


class Text(str):
    def encode(self, *arguments):
        return b"__INITIALIZED__"


def attack(payload):
    refused = 0
    for key in (1, None, [1], Key(bytes(300)), "\ud800"):
        try:
            pvm_host.set_state(key, b"v")
        except (TypeError, ValueError, pvm_host.HostError):
            refused += 1
    pvm_host.set_state(Text("plain"), b"v")
    return f"{refused} refused".encode()

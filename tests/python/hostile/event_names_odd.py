# Emits events whose names are escapes, markup, NUL bytes and nothing.
# expect: ok emitted
import pvm_host


def attack(payload):
    for name in ("", "\x00", "\x1b[2J\x1b[31mred", "<script>", "a\nb", "\u202e", "ActorDeployed"):
        pvm_host.emit_event(name, b"\x1b[2J\x00")
    return b"emitted"

# Emits 50,000 events without data in a call that succeeds.
# expect: HostError: the call has used all of its cells
# limit: 19500000
# cells: 100
import pvm_host


def attack(payload):
    emit = pvm_host.emit_event
    for _ in range(50_000):
        emit("", b"")
    return b"emitted"

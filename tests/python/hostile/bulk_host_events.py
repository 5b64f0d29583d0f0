# Emits events without name and data, which take no cells, until the cycles end.
# expect: (OutOfCycles|HostError)
# limit: 19000000
import pvm_host


def attack(payload):
    emit = pvm_host.emit_event
    while True:
        emit("", b"")

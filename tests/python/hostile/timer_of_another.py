# Cancels and extends a timer that is not its own.
# expect: ok 1 left
# value: 1cby
import pvm_host


def attack(payload):
    timer = pvm_host.schedule_timer(pvm_host.current_block() + 100, b"")
    pvm_host.cancel_timer(bytes(32))
    pvm_host.extend_timer(bytes(32), 2**64 - 1)
    try:
        pvm_host.extend_timer(timer, 2**64 - 1)
    except pvm_host.HostError:
        return b"1 left"
    return b"extended"

# Schedules timers with numbers that are too large or negative.
# expect: ok 6 refused
# value: 1cby
import pvm_host


def attack(payload):
    refused, soon = 0, pvm_host.current_block() + 2
    for arguments in (
        (2**64, b""),
        (-1, b""),
        (soon, b"", b"", 2**64 - 1),
        (soon, b"", b"", 0, 2**64 - 1),
        (soon, b"", b"x"),
        (soon, b"", b"", 0, 0, 1),
    ):
        try:
            pvm_host.schedule_timer_ex(*arguments)
        except pvm_host.HostError:
            refused += 1
    return f"{refused} refused".encode()

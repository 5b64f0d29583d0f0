# Schedules timers for now and for the past.
# expect: ok 3 refused
# value: 1cby
import pvm_host


def attack(payload):
    now, refused = pvm_host.current_block(), 0
    for height in (0, now - 1, now):
        try:
            pvm_host.schedule_timer(height, b"")
        except pvm_host.HostError:
            refused += 1
    return f"{refused} refused".encode()

# Schedules two timers in each fire, until its money is gone.
# expect: ok scheduled
# value: 0.1cby
import pvm_host


def handle_timer(payload):
    for _ in range(2):
        pvm_host.schedule_timer(pvm_host.current_block() + 1, payload)


def attack(payload):
    handle_timer(payload)
    return b"scheduled"

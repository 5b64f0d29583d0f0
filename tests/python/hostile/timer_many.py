# Schedules timers until the chain refuses, all for one height, and lets them fire.
# expect: ok 1024 .*(TooManyTimers|timers)
# value: 100cby
# limit: 19500000
# cells: 900000
import pvm_host


def handle_timer(payload):
    pvm_host.set_state(b"fired", payload)


def attack(payload):
    soon, count = pvm_host.current_block() + 2, 0
    try:
        while True:
            pvm_host.schedule_timer(soon, b"%d" % count)
            count += 1
    except pvm_host.HostError as error:
        return f"{count} {error}".encode()

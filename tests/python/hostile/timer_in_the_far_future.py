# Schedules timers for the end of time.
# expect: HostError: (ExpiryOutOfRange|Height)
# value: 1cby
import pvm_host


def attack(payload):
    pvm_host.schedule_timer(2**64 - 1, b"")

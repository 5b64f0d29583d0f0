# Lets another account pay for its timer.
# expect: HostError: .*Payer
# value: 1cby
import pvm_host


def attack(payload):
    soon = pvm_host.current_block() + 2
    pvm_host.schedule_timer_ex(soon, b"", pvm_host.context()["sender"])

# Calls another actor, in whose call a timer for the first is scheduled: it fires later, alone.
# expect: ok
# value: 1cby
import pvm_host


def handle_timer(payload):
    pvm_host.call_actor(payload, "answer", b"", 0)


def answer(payload):
    return pvm_host.call_actor(pvm_host.context()["sender"], "answer", b"", 0)


def attack(payload):
    pvm_host.schedule_timer(pvm_host.current_block() + 1, payload)
    return b"scheduled"

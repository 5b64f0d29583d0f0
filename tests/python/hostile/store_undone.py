# Stores, emits and sends, and then fails: nothing of it is left.
# expect: ValueError: undone, 0 keys
# value: 1cby
import pvm_host


def attack(payload):
    pvm_host.set_state(b"key", b"v")
    pvm_host.emit_event("gone", b"")
    pvm_host.send_message(pvm_host.self_address(), b"gone")
    pvm_host.schedule_timer(pvm_host.current_block() + 5, b"gone")
    raise ValueError("undone")

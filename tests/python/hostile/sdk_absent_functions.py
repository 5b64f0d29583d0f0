# Calls every host function that this devnet lacks.
# expect: ok 12 refused
import pvm_host


def attack(payload):
    names = (
        "fork_actor upgrade_self subscribe_event unsubscribe_event force_unsubscribe_event "
        "update_bid topup_subscription submit_job intent_deposit intent_withdraw "
        "intent_broadcast offchain_image_initialize"
    ).split()
    refused = 0
    for name in names:
        try:
            getattr(pvm_host, name)(1, two=2)
        except pvm_host.HostError as error:
            refused += error.code == 2
    return f"{refused} refused".encode()

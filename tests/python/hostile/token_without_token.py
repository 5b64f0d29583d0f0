# Moves, mints and burns a token that does not exist.
# expect: ok \d+ refused
import pvm_host


def attack(payload):
    token, to, refused = bytes(32), bytes(20), 0
    for function, arguments in (
        (pvm_host.token_transfer, (token, to, 2**128 - 1)),
        (pvm_host.token_transfer_from, (token, to, to, 1)),
        (pvm_host.token_approve, (token, to, 1)),
        (pvm_host.token_mint, (token, to, 1)),
        (pvm_host.token_burn, (token, 1)),
        (pvm_host.token_balance_of, (token, to)),
        (pvm_host.token_total_supply, (token,)),
        (pvm_host.token_allowance, (token, to, to)),
    ):
        try:
            function(*arguments)
        except pvm_host.HostError:
            refused += 1
    return f"{refused} refused".encode()

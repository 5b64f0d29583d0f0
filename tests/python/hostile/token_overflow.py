# Mints a token beyond 2^128.
# expect: (HostError|ok refused)
# value: 1cby
import pvm_host


def attack(payload):
    own = pvm_host.self_address()
    token = pvm_host.token_create("x", "X", 18, 2**128 - 1)
    try:
        pvm_host.token_mint(token, own, 1)
    except pvm_host.HostError:
        return b"refused"
    return b"minted"

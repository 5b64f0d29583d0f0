# Keeps 50 MB in each of the instances that the devnet loads ahead.
# expect: ok 50000000
# limit: 19000000
KEPT = bytearray(b"x") * 50_000_000


def attack(payload):
    return str(len(KEPT)).encode()

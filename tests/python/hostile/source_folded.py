# Lets the compiler fold large constants.
# expect: ok folded
# limit: 19000000
HUGE = "a" * 10**6 + "b" * 10**6


def attack(payload):
    return b"folded" if 10**6 < len(HUGE) else b""

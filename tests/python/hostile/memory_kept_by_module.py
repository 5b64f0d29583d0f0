# Keeps 50 MB in the module itself: instances that are loaded ahead keep it, too.
# expect: ok 50000000|MemoryError
# limit: 19000000
KEPT = bytearray(b"x") * 50_000_000


def attack(payload):
    return str(len(KEPT)).encode()

# Searches 20 MB for a byte that is not there.
# expect: OutOfCycles
# limit: 19000000
def attack(payload):
    kept = b"a" * 20_000_000
    while True:
        kept.find(b"b")

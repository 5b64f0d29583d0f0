# Counts in 20 MB.
# expect: OutOfCycles
# limit: 19000000
def attack(payload):
    kept = b"ab" * 10_000_000
    while True:
        kept.count(b"x")

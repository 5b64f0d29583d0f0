# Hashes 20 MB again and again.
# expect: OutOfCycles
# limit: 19000000
import hashlib


def attack(payload):
    kept = bytes(20_000_000)
    while True:
        hashlib.sha256(kept).digest()

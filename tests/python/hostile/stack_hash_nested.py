# Hashes 100,000 nested tuples.
# expect: ok [0-9-]+|RecursionError|Stopped
# limit: 19000000
def attack(payload):
    nest = ()
    for _ in range(100_000):
        nest = (nest,)
    return str(hash(nest)).encode()

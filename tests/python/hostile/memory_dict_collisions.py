# Fills a dict with keys of one hash, which takes quadratic time.
# expect: OutOfCycles
def attack(payload):
    modulus = 2**31 - 1
    return str(len({number * modulus: 0 for number in range(1, 100_000)})).encode()

# Chains 50,000 exceptions by __context__ and lets the last one out.
# expect: KeyError: 49999
# limit: 19000000
def attack(payload):
    last = None
    for number in range(50_000):
        error = KeyError(number)
        error.__context__ = last
        last = error
    raise last

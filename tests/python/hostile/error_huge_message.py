# Raises an exception with a message of ten megabytes.
# expect: ValueError: e+
# limit: 19000000
def attack(payload):
    raise ValueError("e" * 10_000_000)

# Keeps a chain of tracebacks and frames, and frees it.
# expect: ok freed|OutOfCycles|Stopped
# limit: 19000000
def catch(earlier):
    kept = earlier
    try:
        raise ValueError
    except ValueError as error:
        return error, kept


def attack(payload):
    chain = None
    for _ in range(20_000):
        chain = catch(chain)
    chain = None
    return b"freed"

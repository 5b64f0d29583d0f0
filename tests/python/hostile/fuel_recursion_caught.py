# Recurses to the limit, catches it, and goes on.
# expect: OutOfCycles
def deeper():
    try:
        deeper()
    except RecursionError:
        deeper()


def attack(payload):
    deeper()
    return b"ended"

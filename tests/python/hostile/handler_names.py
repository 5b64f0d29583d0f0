# Has no handler: it is called by names of every kind.
# expect: ok all refused
def attack(payload):
    return b"reached"

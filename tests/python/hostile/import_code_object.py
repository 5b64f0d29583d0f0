# Runs bytecode of its own making.
# expect: Stopped: the machine stopped the call
def victim():
    pass


def attack(payload):
    victim.__code__ = victim.__code__.replace(co_code=bytes([255, 0]) * 50)
    return victim()

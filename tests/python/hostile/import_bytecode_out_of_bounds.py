# Runs bytecode that reads constants and locals out of their bounds.
# expect: TypeError: handler attack returned int, not bytes or None
def victim():
    return None


def attack(payload):
    code = bytes([83, 250, 83, 251, 84, 252, 35, 0]) * 20
    victim.__code__ = victim.__code__.replace(co_code=code, co_stacksize=1)
    return victim()

# Returns a bytearray.
# expect: TypeError: handler attack returned bytearray
def attack(payload):
    return bytearray(b"x")

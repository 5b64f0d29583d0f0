# Returns a megabyte and a byte.
# expect: ValueError: handler attack returned 1048577 bytes
# limit: 19000000
def attack(payload):
    return bytes((1 << 20) + 1)

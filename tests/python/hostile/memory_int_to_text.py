# Writes a number of a million bits as text.
# expect: ValueError: Exceeds the limit
def attack(payload):
    return str(len(str(1 << 10**6))).encode()

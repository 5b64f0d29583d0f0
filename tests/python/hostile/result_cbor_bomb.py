# Returns CBOR that announces 2^60 elements, for those who decode results.
# expect: ok 0x9b
def attack(payload):
    return b"\x9b\x10" + bytes(7)

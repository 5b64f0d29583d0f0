# Returns CBOR of 200 nested lists, which the devnet shows decoded.
# expect: ok
def attack(payload):
    return b"\x81" * 200 + b"\x00"

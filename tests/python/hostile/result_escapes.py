# Returns CBOR text with escape sequences.
# expect: ok
def attack(payload):
    text = b"\x1b[2J\x1b]0;title\x07\x00red"
    return bytes([0x60 + len(text)]) + text

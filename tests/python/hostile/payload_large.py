# Gets a payload of 900,000 bytes.
# payload: x * 900000
# expect: ok 900000
# limit: 19000000
def attack(payload):
    return str(len(payload)).encode()

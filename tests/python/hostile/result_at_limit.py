# Returns a megabyte exactly.
# expect: ok 0x0{100}
# limit: 19000000
def attack(payload):
    return bytes(1 << 20)

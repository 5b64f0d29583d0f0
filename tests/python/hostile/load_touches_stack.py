# Uses much native stack whenever it is loaded.
# expect: ok loaded
# limit: 19000000
nest = ()
for _ in range(20_000):
    nest = (nest,)
del nest


def attack(payload):
    return b"loaded"

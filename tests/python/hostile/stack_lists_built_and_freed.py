# Nests 300,000 lists and frees them: freeing obeys no recursion limit.
# expect: ok freed
def attack(payload):
    nest = []
    for _ in range(300_000):
        nest = [nest]
    del nest
    return b"freed"

# Frees a chain of objects with __del__, 50,000 long.
# expect: ok 50000|OutOfCycles
# limit: 19000000
count = 0


class Link:
    def __del__(self):
        global count
        count += 1


def attack(payload):
    last = None
    for _ in range(50_000):
        link = Link()
        link.next = last
        last = link
    del link, last
    return str(count).encode()

# Frees a chain of 100,000 objects, each in the other's attribute.
# expect: ok freed
# limit: 19000000
class Link:
    pass


def attack(payload):
    last = None
    for _ in range(100_000):
        link = Link()
        link.next = last
        last = link
    del link, last
    return b"freed"

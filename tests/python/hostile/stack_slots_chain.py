# Frees a chain of objects with slots, which are freed by another path than dicts.
# expect: ok freed
# limit: 19000000
class Link:
    __slots__ = ("next",)


def attack(payload):
    last = None
    for _ in range(150_000):
        link = Link()
        link.next = last
        last = link
    last = link = None
    return b"freed"

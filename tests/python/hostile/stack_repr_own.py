# Formats itself in its own __repr__.
# expect: RecursionError
class Self:
    def __repr__(self):
        return f"{[self]!r} {self!r:>5}"


def attack(payload):
    return repr(Self()).encode()

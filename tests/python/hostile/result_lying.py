# Returns an object whose class claims to be bytes.
# expect: (TypeError|KeyboardInterrupt)
class Liar:
    @property
    def __class__(self):
        return bytes


def attack(payload):
    return Liar()

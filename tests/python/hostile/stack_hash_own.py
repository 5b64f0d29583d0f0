# Hashes itself in its own hash.
# expect: RecursionError
class Self:
    def __hash__(self):
        return hash((self,))


def attack(payload):
    return str(hash(Self())).encode()

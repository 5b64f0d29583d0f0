# Reads a property in its own getter.
# expect: RecursionError
class Self:
    @property
    def me(self):
        return self.me


def attack(payload):
    return Self().me

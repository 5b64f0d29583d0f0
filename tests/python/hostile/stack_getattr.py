# Looks for an attribute in the search for an attribute.
# expect: RecursionError
class Mirror:
    def __getattr__(self, name):
        return getattr(self, name + "x")


def attack(payload):
    return Mirror().y

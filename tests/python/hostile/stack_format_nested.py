# Formats with a format that formats.
# expect: RecursionError
class Self:
    def __format__(self, spec):
        return f"{self:{spec}x}"


def attack(payload):
    return f"{Self():y}".encode()

# Raises in __del__: the interpreter writes such errors to its error output.
# expect: ok went on
class Odd:
    def __del__(self):
        raise ValueError("in __del__")


def attack(payload):
    Odd()
    return b"went on"

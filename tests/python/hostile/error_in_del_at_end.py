# Raises in __del__ when the interpreter frees the module's objects.
# expect: ok went on
class Odd:
    def __del__(self):
        raise ValueError("in __del__")


ODD = Odd()


def attack(payload):
    global ODD
    del ODD
    return b"went on"

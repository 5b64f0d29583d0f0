# Encodes objects whose __str__, __repr__ and __iter__ raise.
# expect: (CodecError|TypeError|ValueError|KeyboardInterrupt)
from cowboy_sdk import codec


class Trap(dict):
    def __str__(self):
        raise ValueError("str")

    def items(self):
        raise KeyboardInterrupt("items")

    def __iter__(self):
        raise ValueError("iter")

    __repr__ = __str__


def attack(payload):
    return codec.encode({"a": Trap(a=1)})

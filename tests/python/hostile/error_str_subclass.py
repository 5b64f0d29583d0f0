# Raises an exception whose text is a str with methods of its own.
# expect: Odd: (text|its text cannot be made)
class Text(str):
    def __str__(self):
        return "other"

    def encode(self, *arguments):
        return 7

    def __getitem__(self, place):
        raise KeyboardInterrupt


class Odd(Exception):
    def __str__(self):
        return Text("text")


def attack(payload):
    raise Odd()

# Raises an exception whose metaclass raises at every attribute.
# expect: Odd: meta
class Meta(type):
    def __getattribute__(cls, name):
        raise KeyboardInterrupt(name)


class Odd(Exception, metaclass=Meta):
    pass


def attack(payload):
    raise Odd("meta")

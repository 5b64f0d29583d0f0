"""Bases are looked at over many steps, and many next to each other."""

from cowboy_sdk import actor, public


class Mixin0:
    @public
    def init(self, payload):
        return b""

    storage = None  # expect: reserved-name


class Mixin1(Mixin0):
    pass


class Mixin2(Mixin1):
    pass


class Mixin3(Mixin2):
    pass


class Mixin4(Mixin3):
    pass


class Mixin5(Mixin4):
    pass


class Mixin6(Mixin5):
    pass


class Mixin7(Mixin6):
    pass


class Mixin8(Mixin7):
    pass


class Mixin9(Mixin8):
    pass


class Side0:
    pass


class Side1:
    pass


class Side2:
    pass


class Side3:
    pass


class Side4:
    pass


class Side5:
    pass


class Side6:
    pass


class Side7:
    pass


class Side8:
    pass


class Side9:
    @property
    def price(self):
        return self.storage["price"]

    @price.setter
    def price(self, value):
        self.storage["price"] = value


@actor
class Far(Mixin9):
    @public
    def read(self, payload):
        return b""


@actor
class Wide(Side0, Side1, Side2, Side3, Side4, Side5, Side6, Side7, Side8, Side9):
    @public
    def write(self, payload):
        self.price = 1

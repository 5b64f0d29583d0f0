"""What a call leaves outside of the store is lost."""

from cowboy_sdk import actor, public

CACHE = {}
NAMES = ["a", "b"]
HANDLERS = {}
count = 0


def register(function):
    HANDLERS[function.__name__] = function
    return function


@register
def first(payload):
    return payload


class Table:
    def __init__(self):
        self.rows = []

    def add(self, row):
        self.last = row


@actor
class Shop:  # expect: no-init
    def __init__(self):
        self.name = "shop"

    @public
    def buy(self, payload):
        global count
        count += 1  # expect: lost-state
        CACHE[payload] = 1  # expect: lost-state
        CACHE.setdefault(payload, 2)  # expect: lost-state
        del CACHE[payload]  # expect: lost-state
        self.total = 1  # expect: lost-state
        self.price = 2
        self.storage["total"] = 1
        names = list(NAMES)
        names.append(payload)
        local = {}
        local[payload] = 1
        Table().add(payload)
        return CACHE.get(payload)

    @property
    def price(self):
        return self.storage["price"]

    @price.setter
    def price(self, value):
        self.storage["price"] = value

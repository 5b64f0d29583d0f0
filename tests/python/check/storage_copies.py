"""Stored values are decoded each time they are read."""

from cowboy_sdk import actor, public


@actor
class Shop:
    @public
    def init(self, payload):
        self.storage["orders"] = []

    @public
    def buy(self, payload):
        self.storage["orders"].append(payload)  # expect: storage-copy
        self.storage.get("prices", {})["a"] = 1  # expect: storage-copy
        self.storage["prices"]["a"] = 1  # expect: storage-copy
        self.storage["count"] += 1
        orders = self.storage["orders"]
        orders.append(payload)
        self.storage["orders"] = orders
        return self.storage["orders"].copy()

"""Divisions of decimals and fractions are exact, or rounded as their context says."""

from decimal import *

from cowboy_sdk import actor, public

FEE = Decimal("0.03")


@actor
class Shop:  # expect: no-init
    @public
    def split(self, payload):
        price: Decimal = Decimal(payload)
        cents = price.quantize(Decimal(1))
        self.storage["shares"] = [
            str(price / 3),
            str(-price / 3),
            str(Decimal(payload) / 3),
            str((1 + Decimal(payload)) / 3),
            str((cents if payload else -cents) / 3),
            str(max(price, cents) / 3),
            str(100 / FEE),
            str(100 / LIMIT),
            str(self._share(price, 3)),
        ]
        whole = int(price)
        whole /= 3  # expect: float
        return whole / 3  # expect: float

    def _share(self, price: Decimal, people: int):
        price /= 1 / people  # expect: float
        return price / people


LIMIT = Decimal(5)

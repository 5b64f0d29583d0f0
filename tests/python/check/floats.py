"""Floating point in handlers, and in what they call."""

import math
import statistics
from decimal import Decimal
from fractions import Fraction
from math import isqrt, sqrt

from cowboy_sdk import actor, public, pvm_random, pvm_time, runner

RATE = 0.03
SHARE: float = 0.5


@actor
class Shop:  # expect: no-init
    @public
    def price(self, payload):
        fee = payload * 0.3  # expect: float
        fee += payload / 100  # expect: float
        fee /= 3  # expect: float
        fee += float(payload)  # expect: float
        fee += math.sqrt(fee)  # expect: float
        fee += math.pi  # expect: float
        fee += sqrt(fee)  # expect: float
        fee += statistics.mean([1, 2])  # expect: float
        fee += pvm_random.random()  # expect: float
        fee += pvm_time.time()  # expect: float
        fee *= RATE  # expect: float
        fee *= SHARE  # expect: float
        return fee + self._rate() + _discount(payload)

    def _rate(self):
        return 1.5  # expect: float

    @public
    def exact(self, payload):
        half = Fraction(1, 2)
        total = Decimal(payload["price"]) / 3 + half / 2 + 7 // 2 + math.isqrt(9) + math.gcd(4, 6)
        total += pvm_random.randint(1, 6) + pvm_time.time_ms() + payload["price"] * 30 // 10_000
        total += isqrt(total)
        return str(total if isinstance(total, float) else half)


def _discount(price):
    return price / 2  # expect: float


def _not_called(price: float = 0.5) -> float:
    return price / 2

"""Fields that a model refuses."""

from dataclasses import dataclass, field
from typing import ClassVar

from cowboy_sdk import CowboyModel


class Order(CowboyModel):
    buyer: bytes
    tags: set  # expect: model-field
    others: "frozenset"  # expect: model-field
    lines: list = []  # expect: model-field
    price: int  # expect: model-field


class Rush(Order):
    fee: int = 0
    to: bytes  # expect: model-field


class Right(CowboyModel):
    kind: ClassVar[str] = "right"
    buyer: bytes
    tags: set[str]
    price: float
    lines: list = field(default_factory=list)


class Unrelated:
    tags: set = set()
    lines: list = []
    price: int

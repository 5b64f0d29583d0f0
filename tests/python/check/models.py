"""Fields that a model refuses."""

from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar
from typing import ClassVar as Shared

from cowboy_sdk import CowboyModel


def make():
    return field(init=False)


class Order(CowboyModel):
    buyer: bytes
    tags: set  # expect: model-field
    others: "frozenset"  # expect: model-field
    lines: list = []  # expect: model-field
    price: int  # expect: model-field


class Rush(Order):
    fee: int = 0
    to: bytes  # expect: model-field


class Called(CowboyModel):
    fee: int = max(1, 2)
    to: bytes  # expect: model-field
    lines: list = list()  # expect: model-field
    kinds: list = field(default_factory=list)
    name: str  # expect: model-field
    tags: set = field(default=None)  # expect: model-field


class Free(CowboyModel):
    fee: int = field(default=1, init=False)
    to: bytes
    late: int = make()
    name: str


class Named(CowboyModel):
    fee: int = 0
    _: KW_ONLY
    to: bytes
    tags: set  # expect: model-field


class Renewed(Named):
    kind: int = 1
    fee: int


class Right(CowboyModel):
    kind: ClassVar[str] = "right"
    others: Shared[list] = []
    texts: "ClassVar[list]" = []
    buyer: bytes
    tags: set[str]
    price: float
    lines: list = field(default_factory=list)


class Unrelated:
    tags: set = set()
    lines: list = []
    price: int

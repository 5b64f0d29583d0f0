"""Handlers must be ordinary methods."""

import functools

from cowboy_sdk import actor, public


@actor
class Shop:  # expect: no-init
    @staticmethod
    def price(payload):  # expect: handler-kind
        return b""

    @classmethod
    def create(cls, payload):  # expect: handler-kind
        return b""

    @public
    @functools.lru_cache
    def cached(self, payload):  # expect: handler-kind
        return b""

    @staticmethod
    def _double(value):
        return value * 2

    @property
    def total(self):
        return self._double(2)

    class Helper:
        @staticmethod
        def price(payload):
            return b""

"""A handler is called with one payload."""

from cowboy_sdk import actor, emit, public, timer


def logged(function):
    return function


@actor
class Vault:
    @public
    def init(self):  # expect: signature
        return b""

    @public
    def two(self, first, second):  # expect: signature
        return b""

    @emit("done")
    @public
    def nothing():  # expect: signature
        return b""

    @public
    def named(self, payload, *, key):  # expect: signature
        return b""

    @timer
    def tick(self):  # expect: signature
        return b""

    @public
    def defaults(self, payload, count=1, *, key=None):
        return b""

    @public
    def any_number(self, *payloads):
        return b""

    @logged
    @public
    def unknown(self, first, second):
        return b""

    def _helper(self, first, second):
        return b""


def two(first, second):  # expect: signature
    return Vault().two(first)


def helper(first, second):
    return first + second

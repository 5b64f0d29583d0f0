"""Forms of the same decorators that the SDK takes."""

from cowboy_sdk import OWNER, SELF, actor, bounded_loop, callable_by, emit, public
from cowboy_sdk import reentrancy_guard, timer

ADMIN = "0x" + "12" * 20
OPTIONS = {"decode": "raw"}


@actor
class Shop:  # expect: no-init
    @public()
    def a(self, payload):
        return b""

    @public(decode="json")
    def b(self, payload):
        return b""

    @callable_by(OWNER, SELF, ADMIN, b"\x01" * 20, decode="raw")
    def c(self, payload):
        return b""

    @callable_by("0x1212121212121212121212121212121212121212")
    def d(self, payload):
        return b""

    @callable_by(*[OWNER])
    def e(self, payload):
        return b""

    @public(**OPTIONS)
    def f(self, payload):
        return b""

    @timer(deferred=False, name="tock")
    def g(self, payload):
        return b""

    @public
    @reentrancy_guard(key="lock")
    @bounded_loop(10)
    @emit("done")
    def h(self, payload):
        return b""

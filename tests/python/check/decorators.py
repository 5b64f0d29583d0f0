"""Arguments that the SDK refuses when the module is loaded."""

from cowboy_sdk import actor, bounded_loop, callable_by, deferred, emit, public, reentrancy_guard
from cowboy_sdk import timer


@actor
class Shop:  # expect: no-init
    @public(decode="xml")  # expect: decorator-arguments
    def a(self, payload):
        return b""

    @public("raw")  # expect: decorator-arguments
    def b(self, payload):
        return b""

    @callable_by()  # expect: decorator-arguments
    def c(self, payload):
        return b""

    @callable_by  # expect: decorator-arguments
    def d(self, payload):
        return b""

    @callable_by(b"\x01" * 20, "0x12", decode="raw")  # expect: decorator-arguments
    def e(self, payload):
        return b""

    @callable_by(b"too short")  # expect: decorator-arguments
    def f(self, payload):
        return b""

    @public
    @deferred()  # expect: decorator-arguments
    def g(self, payload):
        return b""

    @timer(after=3)  # expect: decorator-arguments
    def h(self, payload):
        return b""

    @public
    @emit  # expect: decorator-arguments
    def i(self, payload):
        return b""

    @public
    @bounded_loop  # expect: decorator-arguments
    def j(self, payload):
        return b""

    @public
    @reentrancy_guard("lock")  # expect: decorator-arguments
    def k(self, payload):
        return b""

    @public(decode="cbor")  # expect: decorator-arguments
    def on_fork(self, payload):
        return b""

    @public
    @emit(7)  # expect: decorator-arguments
    def l(self, payload):
        return b""


@actor()  # expect: decorator-arguments
class Other:
    pass

"""Which methods are denied to other callers."""

from cowboy_sdk import SELF, actor, callable_by, emit, public, reentrancy_guard, runtime, timer


@actor
class Vault:
    def __init__(self):
        pass

    @public
    def init(self, payload):
        timer.schedule(runtime.get_block_height() + 1, handler="by_name")
        timer.schedule(runtime.get_block_height() + 1, handler=self.by_function)

    def closed(self, payload):  # expect: not-public
        return payload

    @emit("taken")
    def emitting(self, payload):  # expect: not-public
        return payload

    @reentrancy_guard
    @public
    def guarded(self, payload):
        return self.helper(payload, 1)

    def helper(self, payload, count):  # expect: not-public
        return payload * count

    @timer
    def tick(self, payload):
        return b""

    def by_name(self, payload):
        return b""

    def by_function(self, payload):
        return b""

    def handle_timer(self, payload):
        return b""

    def handle_message(self, payload):  # expect: not-public
        return b""

    @callable_by(SELF)
    def on_fork(self, payload):
        return b""

    def _private(self, payload):
        return b""

    @public
    def start(self, payload):
        runtime.set_interval(10, "each_ten")

    @timer
    def every(self, payload):
        runtime.dispatch_interval(payload, {"each_ten": self.each_ten})

    def each_ten(self, payload):
        return b""

    @property
    def price(self):
        return 1

"""What handlers of pure mode may not do: send. Timers, calls and events are allowed."""

from cowboy_sdk import ActorRef, PurityViolationError, actor, call, deferred, public, pure
from cowboy_sdk import runtime, send, timer


@actor
class Shop:
    @public
    def init(self, payload):
        send(payload, b"")  # expect: impure-send

    @public
    @pure
    def explicit(self, payload):
        runtime.send_message(payload, b"")  # expect: impure-send

    @public
    def reference(self, payload):
        oracle = ActorRef(payload)
        oracle.send({"price": 1})  # expect: impure-send
        ActorRef(payload).send()  # expect: impure-send
        other: ActorRef = ActorRef(payload)
        other.send({"price": 2})  # expect: impure-send
        return oracle.price()

    @public
    def allowed(self, payload):
        timer.schedule(runtime.get_block_height() + 1, b"")
        runtime.emit_event("called", payload)
        call(payload, "price", [])
        return ActorRef(payload).call("price")

    @public
    @deferred
    def later(self, payload):
        send(payload, b"")
        runtime.transfer_balance(payload, 1)

    @public
    def expects_it(self, payload):
        try:
            send(payload, b"")
        except PurityViolationError:
            return False

    @timer
    def tick(self, payload):
        send(payload, b"")

    @timer(deferred=False)
    def quiet_tick(self, payload):
        send(payload, b"")  # expect: impure-send

    def handle_timer(self, payload):
        send(payload, b"")  # expect: impure-send

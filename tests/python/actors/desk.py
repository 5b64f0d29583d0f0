"""A trader's desk that asks a market, in the same transaction."""

from cowboy_sdk import ActorRef, actor, call, deferred, public, runtime
from cowboy_sdk.errors import ActorCallError, ActorNotFoundError

# More than the SDK's default, because loading an actor costs as much.
CYCLES = 2_000_000


@actor
class Desk:
    @public
    def trust(self, market):
        self.storage["market"] = market

    @public
    def ask(self, good):
        market = ActorRef(self.storage["market"], cycles_limit=CYCLES)
        price = market.quote(good, 2)
        self.storage["price"] = price
        return price

    @public
    def ask_as_usual(self, good):
        """With the reference's own limit of cycles."""
        return ActorRef(self.storage["market"]).quote(good)

    @public
    def ask_twice(self, good):
        """A call that fails leaves nothing of the callee, and everything of the caller."""
        self.storage["before"] = good
        try:
            call(self.storage["market"], "fail", [good], CYCLES)
        except ActorCallError as error:
            self.storage["failure"] = type(error).__name__
        self.storage["after"] = call(self.storage["market"], "quote", [good], CYCLES)
        return self.storage["failure"]

    @public
    @deferred
    def provoke(self, delay):
        """What a failed call did is undone; what the others did is kept, in order."""
        runtime.emit_event("before", 1)
        answers = []
        for text, fails in (("one", False), ("two", True), ("three", False)):
            try:
                order = [text, delay + len(answers), fails]
                answers.append(call(self.storage["market"], "shout", order, CYCLES))
            except ActorCallError as error:
                answers.append(str(error))
        runtime.emit_event("after", answers)
        return len(answers)

    @public(decode="raw")
    def handle_message(self, payload):
        self.storage["heard"] = (self.storage.get("heard") or 0) + 1

    @public
    def ask_nowhere(self, good):
        try:
            call(b"\x07" * 20, "quote", [good], CYCLES)
        except ActorNotFoundError:
            return "no such actor"

    @public
    def ask_myself(self, good):
        try:
            call(self.address, "ask", good, CYCLES)
        except ActorCallError as error:
            self.storage["refused"] = True
            return type(error).__name__

    @public
    def ask_without_limit(self, good):
        raw = runtime.call_actor(self.storage["market"], "quote", b"", 0)
        return len(raw)

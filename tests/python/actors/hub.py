"""A hub that calls its subscribers when it emits, as the SDK's first event module does."""

from cowboy_sdk import actor, public
from cowboy_sdk.events_v0 import EventHub

CYCLES = 2_000_000
HUB = EventHub()


@actor
class Hub:
    @public
    def join(self, order):
        HUB.subscribe(order["topic"], order["who"], order["handler"])
        return len(HUB.list_subs(order["topic"]))

    @public
    def leave(self, order):
        return HUB.unsubscribe(order["topic"], order["who"], order["handler"])

    @public
    def publish(self, order):
        outcomes = HUB.emit(order["topic"], order["payload"], CYCLES)
        self.storage["outcomes"] = outcomes
        return [outcome["ok"] for outcome in outcomes]

"""A tutor that is hired and paid per call."""

from cowboy_sdk import actor, public
from cowboy_sdk.per_call import PerCallLedger

LEDGER = PerCallLedger(credit_limit=2)


@actor
class Tutor:
    @public
    def register_hire(self, hire):
        LEDGER.register(hire["id"], hire["hirer"], hire["version"], hire["units"])

    @public
    def teach(self, lesson):
        LEDGER.accept(lesson["id"])
        LEDGER.record_usage(lesson["id"], {"word": len(lesson["text"].split())})
        state = LEDGER.state(lesson["id"])
        return [state["served_calls"], state["served_counts"], state["version"]]

    @public
    def record_settlement(self, settled):
        counts = settled["counts"]
        LEDGER.record_settlement(settled["id"], settled["total"], settled_counts=counts)
        return LEDGER.unsettled_total()

    @public
    def block_hire(self, hire):
        LEDGER.block(hire)

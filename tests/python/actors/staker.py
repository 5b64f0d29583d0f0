"""A staker: the instructions of delegations, which an account would send."""

from cowboy_sdk import actor, codec, delegation, public, runtime


@actor
class Staker:
    @public
    def plan(self, order):
        runner, amount = order["runner"], order["amount"]
        self.storage["plan"] = [
            delegation.delegate(runner, amount),
            delegation.increase_delegation(runner, 1),
            delegation.undelegate(runner, amount),
        ]
        return runtime.keccak256(codec.encode(self.storage["plan"]))

"""A vault: locks, guarded values, and money."""

from cowboy_sdk import GuardSet, actor, deferred, public, reentrancy_guard, runtime, storage_guard


@actor
class Vault:
    @public
    @reentrancy_guard
    def withdraw(self, amount):
        locked = runtime.get_state(b"__reentrancy:withdraw") is not None
        self.storage["withdrawn"] = (self.storage.get("withdrawn") or 0) + amount
        return locked

    @public
    @reentrancy_guard(key=lambda self, payload: "box" + str(payload))
    def open_twice(self, payload):
        return self.open_twice(payload)

    @public
    def guard(self, value):
        box = storage_guard("box")
        before = box.compute_hash()
        box.value = value
        guards = GuardSet("box", b"other")
        guards.verify_all({g.key_repr: g.compute_hash() for g in guards})
        self.storage["hashes"] = [before, box.compute_hash()]
        box.verify(before)

    @public
    @deferred
    def pay(self, order):
        runtime.transfer_balance(order["to"], order["wei"])
        self.storage["paid"] = order["wei"]

    @public
    def pay_in_pure(self, order):
        runtime.transfer_balance(order["to"], order["wei"])

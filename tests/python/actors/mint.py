"""A mint: a token of its own."""

from cowboy_sdk import actor, public, runtime


@actor
class Mint:
    @public
    def create(self, supply):
        token = runtime.token_create(b"Coin", b"COI", 6, supply, supply * 2, None, None)
        self.storage["token"] = token
        return [runtime.token_total_supply(token), runtime.token_balance_of(token, self.address)]

    @public
    def pay(self, order):
        token = self.storage["token"]
        runtime.token_transfer(token, order["to"], order["amount"])
        return runtime.token_balance_of(token, order["to"])

    @public
    def change_supply(self, by):
        token = self.storage["token"]
        if by >= 0:
            runtime.token_mint(token, self.address, by)
        else:
            runtime.token_burn(token, -by)
        return runtime.token_total_supply(token)

    @public
    def approve(self, order):
        token = self.storage["token"]
        runtime.token_approve(token, order["spender"], order["amount"])
        return runtime.token_allowance(token, self.address, order["spender"])

    @public
    def take(self, order):
        """As its own spender."""
        token, own = self.storage["token"], self.address
        runtime.token_approve(token, own, 1_000)
        runtime.token_transfer_from(token, own, order["to"], order["amount"])
        return [runtime.token_allowance(token, own, own), runtime.token_balance_of(token, own)]

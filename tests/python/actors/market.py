"""A market for one good: sorted maps, bounded loops, and an answer for other actors."""

from cowboy_sdk import BoundedRange, SortedMap, actor, bounded_loop, deferred, public, runtime


@actor
class Market:
    @public
    def offer(self, order):
        price, amount = order
        book = SortedMap(self.storage.get("book") or [])
        book[price] = book.get(price, 0) + amount
        self.storage["book"] = [list(item) for item in book.items()]
        return book.peekitem(0)[0]

    @public
    @bounded_loop(max_iterations=3)
    def buy(self, amount):
        """Takes the cheapest offers, at most three of them."""
        book = SortedMap(self.storage.get("book") or [])
        paid = 0
        for price in BoundedRange(list(book.keys())):
            if amount == 0:
                break
            taken = min(amount, book[price])
            amount -= taken
            paid += taken * price
            book[price] -= taken
            if book[price] == 0:
                del book[price]
        self.storage["book"] = [list(item) for item in book.items()]
        return {"paid": paid, "missing": amount}

    @public
    def quote(self, arguments):
        """What a call through a reference gets: a list of its arguments."""
        self.storage["asked by"] = bytes(self.sender)
        self.storage["asked for"] = arguments
        book = self.storage.get("book") or []
        return book[0][0] if book else None

    @public
    def fail(self, arguments):
        self.storage["asked for"] = "nothing"
        raise LookupError("no such good")

    @public
    @deferred
    def shout(self, order):
        """Every kind of effect, and then maybe a failure."""
        text, delay, fails = order
        runtime.emit_event("shouted", text)
        runtime.schedule_timer(runtime.get_block_height() + delay, text.encode())
        runtime.send_message(self.sender, b"heard")
        self.storage["shouted"] = (self.storage.get("shouted") or []) + [text]
        if fails:
            raise LookupError(text)
        return text

    def handle_timer(self, payload):
        self.storage["echoed"] = (self.storage.get("echoed") or []) + [payload]

"""Two couriers send each other messages until a letter has made its rounds."""

from cowboy_sdk import actor, codec, deferred, public, runtime, send
from cowboy_sdk.send import send_raw


@actor
class Courier:
    @public
    @deferred
    def start(self, letter):
        """A letter is the receiver, the text, and how often it is to be handed on."""
        send(letter["to"], {"text": letter["text"], "left": letter["left"]})
        self.storage["sent"] = letter["text"]

    @public
    @deferred
    def handle_message(self, letter):
        if letter["text"] == "lost":
            raise ValueError("a letter that says lost")
        if letter.get("marked"):
            self._compare_causes()
        got = self.storage.get("got") or []
        self.storage["got"] = got + [[bytes(self.sender), letter["text"], letter["left"]]]
        if letter["left"] > 0:
            text = letter["text"] + "!"
            payload = codec.encode({"text": text, "left": letter["left"] - 1})
            send_raw(bytes(self.sender), payload)

    @public
    @deferred
    def send_twice(self, letter):
        for text in ("first", "second"):
            send(letter["to"], {"text": text, "left": 0, "marked": True})

    @public
    def eager(self, letter):
        send(letter["to"], letter)

    def _compare_causes(self):
        """Two messages of one transaction have hashes of their own: ids derive from them."""
        hashes = (self.storage.get("random:hashes") or []) + [runtime.get_tx_hash()]
        self.storage["random:hashes"] = hashes
        numbers = (self.storage.get("random:numbers") or []) + [runtime.randomness(b"")]
        self.storage["random:numbers"] = numbers
        self.storage["different"] = [len(set(hashes)), len(set(numbers))]

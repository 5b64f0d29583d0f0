"""An archive of notes: storage, models, and the three codecs of payloads."""

from cowboy_sdk import CowboyModel, actor, codec, public, runtime


class Note(CowboyModel):
    title: str
    stars: int
    weight: float
    tags: list


@actor
class Archive:
    @public
    def init(self, payload):
        self.storage["notes"] = 0
        self.storage["founded"] = {"by": bytes(self.sender), "with": payload}

    @public
    def add(self, fields):
        note = Note.from_dict(fields)
        note.validate()
        number = self.storage["notes"] + 1
        self.storage[f"note:{number:04}"] = note.to_dict()
        self.storage["notes"] = number
        return {"number": number, "cbor": note.to_cbor()}

    @public
    def read(self, number):
        stored = self.storage.get(f"note:{number:04}")
        if stored is None:
            raise KeyError(number)
        return Note.from_dict(stored).to_dict()

    @public(decode="json")
    def describe(self, question):
        found = runtime.scan_state_prefix(b"note:", question["limit"])
        notes = [Note.from_cbor(value) for _, value in found]
        return {"titles": [note.title for note in notes], "keys": len(found)}

    @public(decode="raw")
    def keep(self, payload):
        """Raw bytes under a binary key, which is no text."""
        self.storage.set_raw(b"\xff\x00raw", payload)
        runtime.set_state("schlüssel".encode(), payload[::-1])
        return self.storage.get_raw(b"\xff\x00raw")

    @public
    def forget(self, number):
        key = f"note:{number:04}"
        known = key in self.storage
        del self.storage[key]
        self.storage.delete("never there")
        return known

    @public
    def all_kinds(self, value):
        """Stores whatever came, so that both codecs agree on every kind of value."""
        count = self.storage.get("kinds", 0) + 1
        self.storage[f"value:{count:02}"] = value
        self.storage["kinds"] = count
        again = codec.encode(self.storage[f"value:{count:02}"])
        return runtime.keccak256(again)

    @public
    def break_rule(self, which):
        if which == "reserved":
            self.storage["__INITIALIZED__"] = 0
        if which == "set":
            self.storage["notes"] = {1, 2}
        if which == "half":
            self.storage["notes"] = 99
            raise ArithmeticError("after a write")
        if which == "assert":
            assert self.storage["notes"] < 0
        if which == "stop":
            next(iter(()))
        if which == "text":
            raise ValueError("two\nlines: ä, (E1230)\n  why: no", 2)
        if which == "none":
            return self.storage["never there"].title
        if which == "type":
            return object()
        raise Exception

    @public(decode="json")
    def echo(self, value):
        self.storage["echo"] = value
        return value

    @public
    def stretch(self, size):
        """Keys and values of a size."""
        key = b"k" * size
        self.storage.set_raw(key, b"v" * size)
        found = runtime.scan_state_prefix(b"kk", 5)
        self.storage["found"] = [len(key) for key, _ in found]

    @public
    def fill(self, size):
        self.storage["full"] = b"f" * size

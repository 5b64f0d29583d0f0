"""Handlers without a class: no permissions, codecs or modes apply to them."""

from cowboy_sdk import codec, runtime, send


def init(payload):
    runtime.set_state(b"owner", runtime.get_sender())


def add(payload):
    count = _count() + codec.decode(payload)
    runtime.set_state(b"count", codec.encode(count))
    return codec.encode(count)


def tell(payload):
    send(payload, _count())


def _count():
    stored = runtime.get_state(b"count")
    return codec.decode(stored) if stored else 0

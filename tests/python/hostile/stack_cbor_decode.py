# Decodes 100,000 nested lists of CBOR.
# expect: (CodecError|RecursionError)
from cowboy_sdk import codec


def attack(payload):
    return codec.encode(codec.decode(b"\x81" * 100_000 + b"\x00"))

# Encodes 10,000 nested lists as CBOR, with the SDK's codec.
# expect: (CodecError|RecursionError)
from cowboy_sdk import codec


def attack(payload):
    nest = []
    for _ in range(10_000):
        nest = [nest]
    return codec.encode(nest)

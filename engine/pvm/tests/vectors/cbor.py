"""Makes cbor.json with the SDK's own codec: python cbor.py > cbor.json

Needs cowboy-actor-sdk as in ../../requirements.txt. Each value is an object whose only key is its
kind; a case of `decode` without a value is one that the SDK refuses.
"""

import json
import random
import struct

from cowboy_sdk import codec

chance = random.Random(6)


def tagged(value):
    if value is None:
        return {"null": None}
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": str(value)}
    if isinstance(value, float):
        return {"float": struct.pack(">d", value).hex()}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, list):
        return {"list": [tagged(item) for item in value]}
    return {"map": [[tagged(key), tagged(item)] for key, item in value.items()]}


def integer():
    bits = chance.choice([3, 5, 8, 16, 32, 63, 64, 65, 128, 300])
    edge = chance.choice([0, 1, -1]) + (1 << bits)
    return chance.choice([1, -1]) * chance.choice([edge, chance.getrandbits(bits)])


def leaf():
    kind = chance.randrange(7)
    if kind == 0:
        return None
    if kind == 1:
        return chance.random() < 0.5
    if kind in (2, 3):
        return integer()
    if kind == 4:
        return chance.choice([0.0, -0.0, 1.0, 1.5, -2.25e300, 5e-324, chance.gauss(0, 1e9)])
    if kind == 5:
        return chance.randbytes(chance.choice([0, 1, 23, 24, 255, 256]))
    return "".join(chance.choice("az0 é€𝄞\"\\\n") for _ in range(chance.choice([0, 1, 5, 24])))


def value(depth=0):
    if depth == 4 or chance.random() < 0.5:
        return leaf()
    if chance.random() < 0.5:
        return [value(depth + 1) for _ in range(chance.choice([0, 1, 2, 5]))]
    return {leaf(): value(depth + 1) for _ in range(chance.choice([0, 1, 2, 5]))}


HAND = """
00 17 1818 18ff 190100 1a00010000 1b0000000100000000 1bffffffffffffffff 20 3818 3bffffffffffffffff
c249010000000000000000 c349010000000000000000 f4 f5 f6 40 60 80 a0 fb3ff8000000000000
fb8000000000000000 a3616102616201626161 03 a361610261620162616103 a100f6 a1f600 a1f500 a14000
1817 180a 190017 1900ff 1a0000ffff 1b00000000ffffffff 3817 390017 5801ff 780161 9800 b800 9818
c240 c24100 c248ffffffffffffffff c249000000000000000001 c24a00010000000000000000 c100 c074 d81820
d802490100000000000000 00 c2c249010000000000000000 c28100 c26101
f7 f0 f8ff f820 f93c00 f97e00 fa3f800000 fb7ff0000000000000 fbfff0000000000000 fb7ff8000000000000
9fff bfff 5fff 7fff 9f00 ff fc 1c 1d 1e 1f 3c 5c 7c 9c bc dc
a2616100616101 a2616200616101 a26261610061620 1 a2016161f56162 a2016161fb3ff00000000000006162
a2f400 0001 a201f5f5f4 a18000 a1a000 a1c2490100000000000000 0000 a2f50001 a1fb3ff800000000000000
62c328 61ff 63eda080 64f0288cbc 6161 62c3a9 63e282ac 64f09d849e
58ffff 4101 4201 82 8201 a1 a101 1b00 fb3ff8 81 d8 c2 5b7fffffffffffffff00 9b7fffffffffffffff00
bb7fffffffffffffff00 7bffffffffffffffff61 9bffffffffffffffff 0000
""".split()


def decode(data):
    case = {"bytes": data.hex()}
    try:
        case["value"] = tagged(codec.decode(data))
    except codec.CodecError:
        pass
    return case


def damaged(data):
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 2])):
        at = chance.randrange(len(data))
        kind = chance.randrange(3)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            data.insert(at, chance.randrange(256))
        elif len(data) > 1:
            del data[at]
    return bytes(data)


encoded = []
while len(encoded) < 200:
    one = value()
    encoded.append({"bytes": codec.encode(one).hex(), "value": tagged(one)})
cases = [decode(bytes.fromhex(text)) for text in HAND if len(text) % 2 == 0]
cases += [decode(bytes.fromhex(case["bytes"])) for case in encoded]
cases += [decode(damaged(bytes.fromhex(case["bytes"]))) for case in encoded]
cases += [decode(b"")]
# At the limit of depth, and one above.
for depth, inner in ((256, b"\x00"), (256, b"\x80"), (255, b"\x80"), (255, b"\xc2\x49" + b"\x01" * 9),
                     (256, b"\xc2\x49" + b"\x01" * 9)):
    for around in (b"\x81", b"\xa1\x00"):
        case = decode(around * depth + inner)
        # Too deep for JSON's readers: whether it is accepted is enough.
        case["deep"] = "value" in case
        case.pop("value", None)
        cases.append(case)
deep = [case for case in cases if "deep" in case]
cases = [case for case in cases if "deep" not in case]


def lines(name, cases):
    return json.dumps(name) + ": [\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]"


print("{\n" + ",\n".join(lines(*part) for part in (
    ("decode", cases), ("encode", encoded), ("deep", deep))) + "\n}")

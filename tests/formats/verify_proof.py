#!/usr/bin/env python3
"""Checks a proof of `cowboyctl chain prove` as docs/proofs.md says, with the standard library only.

    verify_proof.py FILE CHAIN_ID VALIDATOR_KEY...

CHAIN_ID is 0x and 16 hex digits, each VALIDATOR_KEY an Ed25519 key of the header's epoch, 0x and 64.
Prints what the proof shows as one line of JSON, or which check failed, with exit code 7.
"""

import hashlib
import json
import sys

MAX_BYTES = 2 << 20
KINDS = {1: "account", 2: "actor", 3: "stored", 4: "job", 5: "runner", 6: "task", 7: "presence",
         8: "timer", 9: "timers", 10: "validators"}
PART = {"account": 0, "actor": 7, "stored": 9, "job": 3, "runner": 1, "task": 13, "presence": 17,
        "timer": 10, "timers": 10, "validators": 15}
SUBSETS = 16
PARTS = 19
ZERO = bytes(32)


class Refused(Exception):
    """A failed check: its name, a colon, the reason."""


def check(holds, what):
    if not holds:
        raise Refused(what)


# --- keccak256 ----------------------------------------------------------------------------------

MASK = (1 << 64) - 1
ROTATIONS = [[0, 36, 3, 41, 18], [1, 44, 10, 45, 2], [62, 6, 43, 15, 61], [28, 55, 25, 21, 56],
             [27, 20, 39, 8, 14]]


def round_constants():
    register, constants = 1, []
    for _ in range(24):
        constant = 0
        for j in range(7):
            if register & 1:
                constant |= 1 << ((1 << j) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        constants.append(constant)
    return constants


CONSTANTS = round_constants()


def rotate(word, by):
    return ((word << by) | (word >> (64 - by))) & MASK if by else word


def permute(a):
    for constant in CONSTANTS:
        c = [a[x][0] ^ a[x][1] ^ a[x][2] ^ a[x][3] ^ a[x][4] for x in range(5)]
        d = [c[(x + 4) % 5] ^ rotate(c[(x + 1) % 5], 1) for x in range(5)]
        b = [[0] * 5 for _ in range(5)]
        for x in range(5):
            for y in range(5):
                b[y][(2 * x + 3 * y) % 5] = rotate(a[x][y] ^ d[x], ROTATIONS[x][y])
        a = [[b[x][y] ^ (~b[(x + 1) % 5][y] & MASK & b[(x + 2) % 5][y]) for y in range(5)]
             for x in range(5)]
        a[0][0] ^= constant
    return a


def keccak(*parts):
    data = bytearray(b"".join(parts))
    padding = 136 - len(data) % 136
    data += b"\x01" + bytes(padding - 1)
    data[-1] |= 0x80
    a = [[0] * 5 for _ in range(5)]
    for block in range(0, len(data), 136):
        for lane in range(17):
            at = block + 8 * lane
            a[lane % 5][lane // 5] ^= int.from_bytes(data[at:at + 8], "little")
        a = permute(a)
    return b"".join(a[lane % 5][lane // 5].to_bytes(8, "little") for lane in range(4))


# --- Ed25519 (RFC 8032) -------------------------------------------------------------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    x1, y1, z1, t1 = a
    x2, y2, z2, t2 = b
    e, f = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    g, h = 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    e, f, g, h = f - e, h - g, h + g, f + e
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(n, point):
    result = (0, 1, 1, 0)
    while n:
        if n & 1:
            result = add(result, point)
        point = add(point, point)
        n >>= 1
    return result


def point(data):
    number = int.from_bytes(data, "little")
    y, sign = number & ((1 << 255) - 1), number >> 255
    check(y < P, "certificate: a key or signature is no point of the curve")
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    check((x * x - x2) % P == 0, "certificate: a key or signature is no point of the curve")
    check(not (x == 0 and sign), "certificate: a key or signature is no point of the curve")
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def signed(key, message, signature):
    s = int.from_bytes(signature[32:], "little")
    if s >= L:
        return False
    digest = hashlib.sha512(signature[:32] + key + message).digest()
    k = int.from_bytes(digest, "little") % L
    left = times(8 * s, BASE)
    right = times(8, add(point(signature[:32]), times(k, point(key))))
    return ((left[0] * right[2] - right[0] * left[2]) % P == 0
            and (left[1] * right[2] - right[1] * left[2]) % P == 0)


# --- deterministic CBOR -------------------------------------------------------------------------


def head(kind, number):
    if number < 24:
        return bytes([kind << 5 | number])
    for at, size in enumerate((1, 2, 4, 8)):
        if number < 1 << 8 * size:
            return bytes([kind << 5 | 24 + at]) + number.to_bytes(size, "big")
    raise AssertionError("numbers have 64 bits")


def encode(value):
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(encode, value))
    fields = sorted((encode(name), encode(field)) for name, field in value.items())
    return head(5, len(fields)) + b"".join(name + field for name, field in fields)


def decode(data, what):
    """The value of `data`, which must be its one form."""
    try:
        value, end = item(data, 0, 16)
    except (IndexError, UnicodeDecodeError, ValueError):
        raise Refused(f"form: the {what} is no CBOR") from None
    check(end == len(data) and encode(value) == data, f"form: the {what} is not in its one form")
    return value


def item(data, at, depth):
    if depth == 0:
        raise ValueError
    kind, low = data[at] >> 5, data[at] & 31
    at += 1
    if low < 24:
        number = low
    elif low < 28:
        size = 1 << low - 24
        if at + size > len(data):
            raise ValueError
        number, at = int.from_bytes(data[at:at + size], "big"), at + size
    else:
        raise ValueError
    if kind == 0:
        return number, at
    if kind == 7 and number in (20, 21):
        return number == 21, at
    if number > len(data) - at:
        raise ValueError
    if kind in (2, 3):
        raw = data[at:at + number]
        return (raw if kind == 2 else raw.decode()), at + number
    if kind == 4:
        items = []
        for _ in range(number):
            value, at = item(data, at, depth - 1)
            items.append(value)
        return items, at
    if kind == 5:
        fields = {}
        for _ in range(number):
            name, at = item(data, at, depth - 1)
            if not isinstance(name, str):
                raise ValueError
            fields[name], at = item(data, at, depth - 1)
        return fields, at
    raise ValueError


# --- the file -----------------------------------------------------------------------------------


class Input:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, length):
        check(self.at + length <= len(self.data), f"form: byte {self.at}: the file ends")
        self.at += length
        return self.data[self.at - length:self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "big")

    def long(self):
        return self.take(self.number(4))

    def done(self):
        check(self.at == len(self.data), f"form: byte {self.at}: expected the end")


def verify(data, chain_id, keys):
    check(len(data) <= MAX_BYTES, "length: no proof is as long")
    r = Input(data)
    check(r.take(8) == b"cbyproof", "form: it is no proof")
    check(r.number(1) == 1, "form: it has another version")
    kind = KINDS.get(r.number(1))
    check(kind is not None, "form: no kind has this number")
    key = r.take(r.number(2))
    raw_header = r.long()
    header = decode(raw_header, "header")
    certificate = decode(r.long(), "certificate")
    parts = [r.take(32) for _ in range(PARTS)]

    block = keccak(b"cowboy-block/v1", raw_header)
    check(certificate["block"] == block, "certificate: it is for another block")
    check(certificate["round"]["epoch"] == header["round"]["epoch"],
          "certificate: it is of another epoch")
    root = keccak(b"cowboy-state/v2", *parts)
    check(header["executed"]["state_root"] == root, "state root: the header names another")
    if kind == "validators":
        part, found = validators(r, key, parts, header["executed"]["height"])
    else:
        part, found = shown(r, kind, key)
    check(part == parts[PART[kind]], f"{kind}: the state has another root")
    votes(certificate, chain_id, keys)
    return {"kind": kind, "key": "0x" + key.hex(), "height": header["executed"]["height"],
            "state_root": "0x" + root.hex(), "header_hash": "0x" + block.hex(), **found}


def shown(r, kind, key):
    """The part of the state that the evidence gives, and what it shows."""
    if kind == "presence":
        check(key == b"", "form: presence has no key")
        value = {0: None, 1: b""}.get(r.number(1), False)
        check(value is not False, "form: expected 0 or 1")
        value = None if value is None else r.long()
        r.done()
        return (ZERO if value is None else keccak(value)), value_of(value)
    if kind in ("timer", "timers"):
        other_root, rest = r.take(32), r.take(16)
        if kind == "timer":
            check(len(key) == 32, "form: a timer's id has 32 bytes")
            low, high, size = key, key, 32
        else:
            check(len(key) == 16 and key[:8] <= key[8:], "form: expected two heights in order")
            low, high, size = key[:8] + ZERO, key[8:] + b"\xff" * 32, 40
        root, records = tree(r, size, low, high)
        r.done()
        roots = (root, other_root) if kind == "timer" else (other_root, root)
        part = keccak(b"timers", *roots, rest)
        if kind == "timer":
            return part, value_of(records[0][1] if records else None)
        timers = [[int.from_bytes(key[:8], "big"), "0x" + key[8:].hex()] for key, _ in records]
        return part, {"present": bool(timers), "timers": timers}
    order = r.take(32) if kind == "runner" else None
    if kind in ("account", "actor", "runner"):
        check(len(key) == 20, "form: an address has 20 bytes")
        path = keccak(encode(key))
    elif kind == "stored":
        check(len(key) >= 20, "form: expected an actor and a key")
        try:
            path = keccak(encode([key[:20], key[20:].decode()]))
        except UnicodeDecodeError:
            raise Refused("form: expected a key of UTF-8") from None
    else:
        check(len(key) == 32, "form: an id has 32 bytes")
        path = keccak(encode(key))
    tag = r.number(1)
    check(tag <= 2, "form: expected 0, 1 or 2")
    value = None
    if tag == 0:
        root = ZERO
    elif tag == 1:
        value = r.long()
        root = climb(path, keccak(value), steps(r), kind)
    else:
        other, hashed = r.take(32), r.take(32)
        ways = steps(r)
        check(other != path, f"{kind}: the key is there")
        for bit, _ in ways:
            check(side(other, bit) == side(path, bit), f"{kind}: the way is another key's")
        root = climb(other, hashed, ways, kind)
    r.done()
    return (root if order is None else keccak(root, order)), value_of(value)


def validators(r, key, parts, height):
    """The committees' part of the state, and the contents of both its maps of validators."""
    check(key == b"", "form: validators has no key")
    committees_part, epoch_blocks, committees = newest(r, b"committees")
    subsets_part, overlap_blocks, subsets = newest(r, b"subset-epochs")
    r.done()
    check(subsets_part == parts[SUBSETS], "validators: the state has another root")
    check(epoch_blocks > 0, "validators: an epoch of no block")
    epoch = height // epoch_blocks
    check(committees[0][0] <= epoch + 1 and subsets[0][0] <= height,
          "validators: an entry begins later")

    def committee(at):
        held = [value for since, value in committees if since <= at]
        check(held, "validators: no entry holds")
        return ["0x" + validator["consensus_key"].hex() for validator in held[0]]

    counting = subsets if height - subsets[0][0] < overlap_blocks else subsets[:1]
    return committees_part, {
        "present": True, "epoch": epoch, "committee": committee(epoch),
        "next": committee(epoch + 1), "next_decided": (height + 1) // epoch_blocks > epoch,
        "subset_epochs": [
            {"number": subset["number"],
             "validators": ["0x" + validator["pubkey"].hex() for validator in subset["validators"]]}
            for _, subset in counting]}


def newest(r, name):
    """A part of the state root, its number of blocks, and the newest entries of its map."""
    blocks, number = r.number(8), r.number(1)
    check(number in (1, 2), "form: expected 1 or 2")
    entries, roots = [], []
    for _ in range(number):
        since, value = r.number(8), r.long()
        roots.append(climb(keccak(encode(since)), keccak(value), steps(r), "validators"))
        entries.append((since, decode(value, "entry")))
    check(roots[0] == roots[-1], "validators: the entries are of two maps")
    begins = [since for since, _ in entries]
    check(number == 1 or begins[0] > begins[1], "validators: the entries are out of order")
    ends = b"".join(since.to_bytes(8, "big") for since in begins)
    return keccak(name, roots[0], blocks.to_bytes(8, "big"), ends), blocks, entries


def value_of(value):
    found = {"present": value is not None}
    return found if value is None else {**found, "value": "0x" + value.hex()}


def side(path, bit):
    return path[bit // 8] >> 7 - bit % 8 & 1


def steps(r):
    number = r.number(2)
    check(number <= 256, "form: too many steps")
    return [(r.number(1), r.take(32)) for _ in range(number)]


def climb(path, hashed_value, ways, kind):
    node, last = keccak(b"\x00", path, hashed_value), 256
    for bit, sibling in ways:
        check(bit < last, f"{kind}: the steps are of no map")
        last = bit
        both = (sibling, node) if side(path, bit) else (node, sibling)
        node = keccak(b"\x01", bytes([bit]), *both)
    return node


def digit(key, at):
    return key[at // 4] >> 6 - at % 4 * 2 & 3


def prefix(key, at, last):
    """The least and the greatest key with the digits of `key` before `at`, and `last` at it."""
    bits = 8 * len(key)
    free = bits - 2 * (at + 1)
    least = (int.from_bytes(key, "big") >> free + 2 << 2 | last) << free
    greatest = least | (1 << free) - 1
    return least.to_bytes(len(key), "big"), greatest.to_bytes(len(key), "big")


def tree(r, size, low, high):
    """The root of a tree that shows some keys, and the records from `low` to `high`."""
    if r.data[r.at:] == b"\x03":
        r.take(1)
        return ZERO, []
    records = []

    def node(above, is_root):
        """The node's hash, and the shown keys below it, in order."""
        tag = r.number(1)
        if tag == 0 and not is_root:
            return r.take(32), []
        if tag == 1:
            page = r.long()
            inner, keys = Input(page), []
            while inner.at < len(page):
                length = inner.number(4)
                key, body = inner.take(size), inner.take(length)
                check(not keys or keys[-1] < key, "form: records are out of order")
                keys.append(key)
                if low <= key <= high:
                    records.append((key, body))
            check(keys, "form: a page without records")
            return keccak(b"\x00", page), keys
        check(tag == 2, "form: no node begins like this")
        at, bitmap = r.number(1), r.number(1)
        check(above < at < 4 * size, "form: digits do not ascend")
        check(bitmap < 16 and bin(bitmap).count("1") >= 2, "form: expected two to four children")
        children = [i for i in range(4) if bitmap >> i & 1]
        below = {i: node(at, False) for i in children}
        keys = [key for i in children for key in below[i][1]]
        check(keys, "timers: a part of the range is hidden")
        for i in children:
            for key in below[i][1]:
                place = prefix(keys[0], at, i)
                check(place[0] <= key <= place[1], "timers: a key is misplaced")
        wanted = []
        for i in children:
            least, greatest = prefix(keys[0], at, i)
            if least <= high and greatest >= low:
                wanted.append(i)
        shown_children = [i for i in children if below[i][1]]
        check(shown_children == (wanted or children[:1]), "timers: not the part that the range needs")
        hashes = [below[i][0] for i in children]
        return keccak(b"\x01", bytes([at, bitmap]), *hashes), keys

    root, _ = node(-1, True)
    return root, records


def varint(number):
    data = b""
    while number >= 128:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def votes(certificate, chain_id, keys):
    keys = sorted(keys)
    quorum = len(keys) - (len(keys) - 1) // 3
    cast = certificate["votes"]
    check(len(cast) == quorum, f"certificate: {len(cast)} votes where {quorum} make a quorum")
    numbers = [vote["validator"] for vote in cast]
    check(all(a < b for a, b in zip(numbers, numbers[1:])), "certificate: votes are out of order")
    check(all(n < len(keys) for n in numbers), "certificate: a vote by no validator")
    namespace = b"cowboy/" + chain_id.to_bytes(8, "big") + b"_FINALIZE"
    turn = certificate["round"]
    subject = b"".join(varint(turn[name]) for name in ("epoch", "view", "parent_view"))
    subject += certificate["block"]
    for vote in cast:
        presence = vote["presence"]
        message = (varint(len(namespace)) + namespace + subject
                   + presence["bit_length"].to_bytes(4, "big") + presence["bytes"])
        check(len(vote["signature"]) == 64 and signed(keys[vote["validator"]], message,
                                                      vote["signature"]),
              f"certificate: the vote of validator {vote['validator']} is not signed by it")


def main(arguments):
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    file, chain_id, *keys = arguments
    with open(file, "rb") as opened:
        data = opened.read(MAX_BYTES + 1)
    try:
        print(json.dumps(verify(data, int(chain_id, 16), [bytes.fromhex(k[2:]) for k in keys])))
    except Refused as refused:
        print(refused)
        return 7
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        print(f"form: a record is not what it should be: {error!r}")
        return 7
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Honest and forged proofs of the validators: `python3 -m unittest` in this folder."""

from __future__ import annotations

import unittest
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from keys import keccak256
from validators import COMMITTEES, PARTS, SUBSETS, Refused, Validators

CHAIN = 0x0102030405060708
EPOCH, OVERLAP = 8, 32
Entries = list[tuple[int, Any]]


def voter(number: int) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)


def consensus_key(number: int) -> bytes:
    return voter(number).public_key().public_bytes_raw()


def encoded(value: Any) -> bytes:
    return cbor2.dumps(value, canonical=True)


def listed(numbers: list[int]) -> list[dict[str, bytes]]:
    return [
        {"pubkey": b"\x02" + bytes([number]) * 32, "consensus_key": consensus_key(number)}
        for number in numbers
    ]


def newest(name: bytes, blocks: int, entries: Entries) -> tuple[bytes, bytes]:
    """The part of the state root for a map of one or two entries, and the map's evidence."""
    paths = [keccak256(encoded(since)) for since, _ in entries]
    values = [encoded(value) for _, value in entries]
    leaves = [keccak256(b"\x00", path, keccak256(value)) for path, value in zip(paths, values)]
    steps, root = [b"\x00\x00"], leaves[0]
    if len(entries) == 2:
        differ = int.from_bytes(paths[0], "big") ^ int.from_bytes(paths[1], "big")
        bit = 256 - differ.bit_length()
        right = paths[0][bit // 8] >> 7 - bit % 8 & 1
        root = keccak256(b"\x01", bytes([bit]), *(leaves[::-1] if right else leaves))
        steps = [b"\x00\x01" + bytes([bit]) + other for other in reversed(leaves)]
    evidence = blocks.to_bytes(8, "big") + bytes([len(entries)])
    for (since, _), value, way in zip(entries, values, steps):
        evidence += since.to_bytes(8, "big") + len(value).to_bytes(4, "big") + value + way
    begins = b"".join(since.to_bytes(8, "big") for since, _ in entries)
    return keccak256(name, root, blocks.to_bytes(8, "big"), begins), evidence


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def proof(
    height: int,
    committees: list[tuple[int, list[int]]],
    signers: list[int],
    committee: list[int],
    chain_id: int = CHAIN,
) -> bytes:
    """A proof of the state after a block. `committee` is that of the header's epoch, of which
    `signers` vote; validators are numbers, and subsets are those of the newest committee."""
    entries: Entries = [(since, listed(numbers)) for since, numbers in committees]
    subset = {"number": 0, "validators": entries[0][1]}
    parts = [bytes(32)] * PARTS
    parts[COMMITTEES], first = newest(b"committees", EPOCH, entries)
    parts[SUBSETS], second = newest(b"subset-epochs", OVERLAP, [(0, subset)])
    root = keccak256(b"cowboy-state/v2", *parts)
    turn = {"epoch": (height + 1) // EPOCH, "view": 300, "parent_view": 299}
    header = encoded({"round": turn, "executed": {"height": height, "state_root": root}})
    block = keccak256(b"cowboy-block/v1", header)
    namespace = b"cowboy/" + chain_id.to_bytes(8, "big") + b"_FINALIZE"
    message = varint(len(namespace)) + namespace
    message += b"".join(varint(turn[name]) for name in ("epoch", "view", "parent_view"))
    message += block + bytes(4)
    order = sorted(committee, key=consensus_key)
    votes = [
        {
            "validator": order.index(number),
            "presence": {"bit_length": 0, "bytes": b""},
            "signature": voter(number).sign(message),
        }
        for number in sorted(signers, key=consensus_key)
    ]
    certificate = encoded({"block": block, "round": turn, "votes": votes})
    return b"".join(
        [
            b"cbyproof\x01\x0a\x00\x00",
            len(header).to_bytes(4, "big") + header,
            len(certificate).to_bytes(4, "big") + certificate,
            *parts,
            first,
            second,
        ]
    )


GENESIS = [1, 2, 3, 4]
FIRST = proof(2, [(0, GENESIS)], [1, 2, 3], GENESIS)
CHANGED = [(1, [2, 3, 4, 5]), (0, GENESIS)]


class Trust(unittest.TestCase):
    def trusting(self, numbers: list[int]) -> Validators:
        return Validators(CHAIN, [consensus_key(number) for number in numbers])

    def refused(self, validators: Validators, forged: bytes, why: str) -> None:
        with self.assertRaisesRegex(Refused, why):
            validators.believe(forged)

    def test_a_committee_is_followed_as_it_changes(self) -> None:
        validators = self.trusting(GENESIS)
        roster = validators.believe(FIRST)
        keys = sorted(map(consensus_key, GENESIS))
        self.assertEqual((roster.height, roster.epoch, roster.committee), (2, 0, keys))
        self.assertEqual((roster.following, roster.agreeing()), (keys, 2))
        self.assertEqual(len(roster.targets(b"\x02" + bytes(32))), 3)
        ahead = validators.believe(proof(6, CHANGED, [1, 2, 4], GENESIS))
        self.assertEqual(ahead.following, sorted(map(consensus_key, [2, 3, 4, 5])))
        later = validators.believe(proof(9, CHANGED, [2, 4, 5], [2, 3, 4, 5]))
        self.assertEqual((later.epoch, later.committee), (1, ahead.following))
        self.assertEqual(validators.believe(FIRST), later, "an older state changes nothing")

    def test_strangers_need_enough_who_vouch_for_them(self) -> None:
        gap = proof(9, CHANGED, [2, 4, 5], [2, 3, 4, 5])
        self.assertEqual(self.trusting(GENESIS).believe(gap).epoch, 1)
        strangers = [11, 12, 13, 14]
        forged = proof(2, [(0, strangers)], [11, 12, 13], strangers)
        self.refused(self.trusting(GENESIS), forged, "0 of the 4 validators")
        mixed = [4, 11, 12, 13]
        forged = proof(2, [(0, mixed)], [4, 11, 12], mixed)
        self.refused(self.trusting(GENESIS), forged, "1 of the 4 validators")
        # A signer that counts twice.
        twice = [4, 4, 4, 11]
        forged = proof(2, [(0, twice)], [4, 4, 4], twice)
        self.refused(self.trusting(GENESIS), forged, "two validators have one key")
        few = proof(2, [(0, GENESIS)], [1, 2], GENESIS)
        self.refused(self.trusting(GENESIS), few, "2 votes where 3 make a quorum")
        elsewhere = proof(2, [(0, GENESIS)], [1, 2, 3], GENESIS, CHAIN + 1)
        self.refused(self.trusting(GENESIS), elsewhere, "has not signed its vote")
        # Without named validators, only the first ones are trusted.
        first = Validators(CHAIN, None)
        self.assertEqual(first.believe(FIRST).height, 2)
        forged = proof(3, [(0, strangers)], [11, 12, 13], strangers)
        self.refused(first, forged, "0 of the 4 validators")

    def test_what_is_left_out_or_changed_shows_nothing(self) -> None:
        early = proof(2, [(2, GENESIS), (0, GENESIS)], [1, 2, 3], GENESIS)
        self.refused(self.trusting(GENESIS), early, "begins later")
        whole = proof(9, CHANGED, [2, 4, 5], [2, 3, 4, 5])
        for at in range(0, len(whole), 5):
            changed = bytearray(whole)
            changed[at] ^= 1 << at % 8
            with self.assertRaises(Refused, msg=f"byte {at}"):
                self.trusting(GENESIS).believe(bytes(changed))
            if at % 50 == 0:
                self.refused(self.trusting(GENESIS), whole[:at], "")


if __name__ == "__main__":
    unittest.main()

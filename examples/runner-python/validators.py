"""The validators by proofs ("Who validates" in docs/runner-protocol.md, docs/proofs.md).

`Validators` accepts validators only from proofs of a state that previously known ones have signed.
Everything else here is a pure function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cbor2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import keys
from keys import keccak256

MAX_BYTES = 2 << 20
KIND = 10
PARTS = 19
COMMITTEES, SUBSETS = 15, 16
"""The indexes of both maps among the parts of the state root."""
MAX_STEPS = 256
MAX_VALIDATORS = 100

MALFORMED = (AttributeError, LookupError, OverflowError, TypeError, ValueError)
"""Exceptions that a record with wrong fields raises."""


class Refused(Exception):
    """An invalid proof; the text names the failed check."""


def check(holds: bool, what: str) -> None:
    """Raises Refused if a condition does not hold."""
    if not holds:
        raise Refused(what)


@dataclass(frozen=True)
class Roster:
    """The validators in a state. Committees are lists of Ed25519 keys, ascending."""

    height: int
    """The block after which the state is taken."""
    epoch: int
    committee: list[bytes]
    following: list[bytes]
    """The committee of the next epoch, if nothing more changes."""
    subsets: list[list[bytes]]
    """The on-chain keys of the validators of each subset epoch that counts, newest first."""

    def committee_of(self, epoch: int) -> list[bytes] | None:
        """The committee of an epoch, if the state shows it."""
        return {self.epoch: self.committee, self.epoch + 1: self.following}.get(epoch)

    def targets(self, runner: bytes) -> list[bytes]:
        """The validators that a runner may be connected to, nearest first."""
        nearest = [key for subset in self.subsets for key in keys.subset(runner, subset)]
        return list(dict.fromkeys(nearest))

    def agreeing(self) -> int:
        """Number of validators that must agree: one more than may be dishonest."""
        return (max(len(self.committee), len(self.following)) - 1) // 3 + 1


class Validators:
    """The trusted validators. `voters` are those trusted from the start, by their Ed25519 keys;
    None for those that the first proof names."""

    def __init__(self, chain_id: int, voters: list[bytes] | None) -> None:
        self._chain_id = chain_id
        self._voters = voters
        self._roster: Roster | None = None

    def believe(self, proof: bytes) -> Roster:
        """The newest roster after a proof, which may be of an older state. Raises Refused."""
        roster, certificate = read(proof)
        known = self._roster
        if known and roster.height < known.height:
            return known
        epoch = certificate["round"]["epoch"]
        before = known.committee_of(epoch) if known else None
        if before is None or not self._has_signed(before, certificate):
            committee = roster.committee_of(epoch)
            check(committee is not None, "certificate: it is of an epoch that the state is before")
            assert committee is not None
            signers = signed(certificate, self._chain_id, committee)
            voters = committee if self._voters is None else self._voters
            vouching = sum(key in voters for key in signers)
            needed = (len(voters) - 1) // 3 + 1
            check(
                vouching >= needed,
                f"{vouching} of the {len(voters)} validators that are known have signed it, "
                f"where {needed} would vouch for others",
            )
        self._voters, self._roster = roster.committee, roster
        return roster

    def _has_signed(self, committee: list[bytes], certificate: dict[str, Any]) -> bool:
        try:
            signed(certificate, self._chain_id, committee)
        except Refused:
            return False
        return True


class Input:
    """A reader of bytes."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, length: int) -> bytes:
        """Takes the next bytes. Raises Refused at the end."""
        taken = self._data[self._at : self._at + length]
        check(len(taken) == length, "form: the proof ends")
        self._at += length
        return taken

    def number(self, size: int) -> int:
        """Takes an integer of `size` bytes."""
        return int.from_bytes(self.take(size), "big")

    def long(self) -> bytes:
        """Takes bytes that follow their number."""
        return self.take(self.number(4))

    def ends(self) -> bool:
        """Whether everything has been read."""
        return self._at == len(self._data)


def read(proof: bytes) -> tuple[Roster, dict[str, Any]]:
    """The content of a proof about validators and its certificate, if that is signed."""
    try:
        return _read(proof)
    except (cbor2.CBORError, *MALFORMED) as error:
        raise Refused(f"form: {error!r}") from error


def _read(proof: bytes) -> tuple[Roster, dict[str, Any]]:
    check(len(proof) <= MAX_BYTES, "length: no proof is as long")
    data = Input(proof)
    check(data.take(8) == b"cbyproof" and data.number(1) == 1, "form: it is no proof of version 1")
    check(data.number(1) == KIND and data.number(2) == 0, "form: it is not about validators")
    raw_header, raw_certificate = data.long(), data.long()
    header, certificate = cbor2.loads(raw_header), cbor2.loads(raw_certificate)
    parts = [data.take(32) for _ in range(PARTS)]
    block = keccak256(b"cowboy-block/v1", raw_header)
    check(certificate["block"] == block, "certificate: it is for another block")
    check(certificate["round"]["epoch"] == header["round"]["epoch"], "certificate: of another epoch")
    root = keccak256(b"cowboy-state/v2", *parts)
    check(header["executed"]["state_root"] == root, "state root: the header names another")
    part, epoch_blocks, committees = _newest(data, b"committees")
    check(part == parts[COMMITTEES], "validators: the state has other committees")
    part, overlap_blocks, subsets = _newest(data, b"subset-epochs")
    check(part == parts[SUBSETS], "validators: the state has other subset epochs")
    check(data.ends(), "form: more follows")

    height: int = header["executed"]["height"]
    check(epoch_blocks > 0, "validators: an epoch of no block")
    epoch = height // epoch_blocks
    check(
        committees[0][0] <= epoch + 1 and subsets[0][0] <= height,
        "validators: an entry begins later",
    )

    def committee(at: int) -> list[bytes]:
        held = [value for since, value in committees if since <= at]
        check(bool(held), "validators: no entry holds")
        return sorted(validator["consensus_key"] for validator in held[0])

    counting = [subsets[0][1]]
    if height - subsets[0][0] < overlap_blocks:
        counting += [value for _, value in subsets[1:]]
    public = [[validator["pubkey"] for validator in subset["validators"]] for subset in counting]
    return Roster(height, epoch, committee(epoch), committee(epoch + 1), public), certificate


def _newest(data: Input, name: bytes) -> tuple[bytes, int, list[tuple[int, Any]]]:
    """A part of the state root with a map of validators, the number of blocks stored with the map,
    and the map's newest entries: the beginning and the value of each."""
    blocks, number = data.number(8), data.number(1)
    check(number in (1, 2), "form: expected one entry or two")
    entries: list[tuple[int, Any]] = []
    roots: list[bytes] = []
    for _ in range(number):
        since, value = data.number(8), data.long()
        roots.append(_climb(keccak256(cbor2.dumps(since, canonical=True)), value, data))
        entries.append((since, cbor2.loads(value)))
    check(roots[0] == roots[-1], "validators: the entries are of two maps")
    begins = [since for since, _ in entries]
    check(number == 1 or begins[0] > begins[1], "validators: the entries are out of order")
    ends = b"".join(since.to_bytes(8, "big") for since in begins)
    return keccak256(name, roots[0], blocks.to_bytes(8, "big"), ends), blocks, entries


def _climb(path: bytes, value: bytes, data: Input) -> bytes:
    """The root of the map that contains a value, computed with the following steps."""
    node, last = keccak256(b"\x00", path, keccak256(value)), MAX_STEPS
    steps = data.number(2)
    check(steps <= MAX_STEPS, "form: too many steps")
    for _ in range(steps):
        bit, sibling = data.number(1), data.take(32)
        check(bit < last, "validators: the steps are of no map")
        last = bit
        right = path[bit // 8] >> 7 - bit % 8 & 1
        both = (sibling, node) if right else (node, sibling)
        node = keccak256(b"\x01", bytes([bit]), *both)
    return node


def signed(certificate: dict[str, Any], chain_id: int, committee: list[bytes]) -> list[bytes]:
    """The keys of a certificate's signers, if they are a quorum of the committee."""
    try:
        return _signed(certificate, chain_id, sorted(committee))
    except MALFORMED as error:
        raise Refused(f"certificate: {error!r}") from error


def _signed(certificate: dict[str, Any], chain_id: int, committee: list[bytes]) -> list[bytes]:
    check(len(committee) <= MAX_VALIDATORS, "certificate: a committee is not as large")
    check(len(set(committee)) == len(committee), "certificate: two validators have one key")
    votes, turn = certificate["votes"], certificate["round"]
    quorum = len(committee) - (len(committee) - 1) // 3
    check(len(votes) == quorum, f"certificate: {len(votes)} votes where {quorum} make a quorum")
    numbers = [vote["validator"] for vote in votes]
    check(
        all(before < after for before, after in zip(numbers, numbers[1:])),
        "certificate: votes are out of order",
    )
    check(0 <= numbers[0] and numbers[-1] < len(committee), "certificate: a vote by no validator")
    namespace = b"cowboy/" + chain_id.to_bytes(8, "big") + b"_FINALIZE"
    subject = b"".join(_varint(turn[name]) for name in ("epoch", "view", "parent_view"))
    subject = _varint(len(namespace)) + namespace + subject + certificate["block"]
    for vote in votes:
        seen = vote["presence"]
        message = subject + seen["bit_length"].to_bytes(4, "big") + seen["bytes"]
        key = Ed25519PublicKey.from_public_bytes(committee[vote["validator"]])
        try:
            key.verify(vote["signature"], message)
        except InvalidSignature:
            raise Refused(
                f"certificate: validator {vote['validator']} has not signed its vote"
            ) from None
    return [committee[number] for number in numbers]


def _varint(number: int) -> bytes:
    data = b""
    while number >= 128:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])

"""Frames and their signatures ("Frames").

A frame is a dataclass whose fields define the permitted values. `encode` and `decode` follow from
them; nothing else in the runner sees bytes of the control and job streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import cbor2

from keys import keccak256

VERSION = 1

CONTROL = "control"
JOB = "job"
LIMITS = {CONTROL: 65_536, JOB: 16_777_216}
"""The maximum length of type and payload together on each kind of stream."""

REJECT_REASONS = (
    "at_capacity",
    "unsupported_kind",
    "missing_entitlement",
    "invalid_spec",
    "deadline_passed",
)
CANCEL_REASONS = ("reassigned", "expired", "failed", "done")


class ProtocolError(Exception):
    """An error of the peer; `reason` is sent to it in a Goodbye."""

    def __init__(self, reason: str, details: str) -> None:
        super().__init__(f"{reason}: {details}")
        self.reason = reason


# Permitted values of a field

Check = Callable[[Any], bool]


def _field(check: Check, optional: bool = False) -> Any:
    metadata = {"check": check, "optional": optional}
    if optional:
        return field(default=None, metadata=metadata)
    return field(metadata=metadata)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value.encode()) <= 128


def uint(most: int = 2**64 - 1) -> Any:
    """An integer from 0 to `most`."""
    return _field(lambda value: type(value) is int and 0 <= value <= most)


def data(length: int | None = None) -> Any:
    """A byte string, of exactly this length if one is given."""
    return _field(lambda value: type(value) is bytes and length in (None, len(value)))


def text(optional: bool = False) -> Any:
    """A text of at most 128 bytes."""
    return _field(_is_text, optional)


MAX_REASON_BYTES = 256


def reason() -> Any:
    """The reason of a failed job: a text of at most 256 bytes."""
    return _field(
        lambda value: type(value) is str and len(value.encode()) <= MAX_REASON_BYTES
    )


def one_of(*values: str, optional: bool = False) -> Any:
    """One of the given texts."""
    return _field(lambda value: value in values, optional)


def flag() -> Any:
    """A bool."""
    return _field(lambda value: type(value) is bool)


def texts() -> Any:
    """At most 64 texts."""
    return _field(
        lambda value: type(value) is list and len(value) <= 64 and all(map(_is_text, value))
    )


def job_ids() -> Any:
    """At most 1,024 ids of jobs."""
    return _field(
        lambda value: type(value) is list
        and len(value) <= 1024
        and all(type(found) is bytes and len(found) == 32 for found in value)
    )


def reveals() -> Any:
    """At most 64 results of runners, each a map like the fields of a JobResult."""
    lengths = {"runner": 20, "result_data": None, "runner_signed": 65}

    def is_reveal(value: Any) -> bool:
        return (
            type(value) is dict
            and value.keys() == lengths.keys()
            and all(type(found) is bytes for found in value.values())
            and all(length in (None, len(value[name])) for name, length in lengths.items())
        )

    return _field(
        lambda value: type(value) is list and len(value) <= 64 and all(map(is_reveal, value))
    )


# The table of frames


KINDS: dict[int, type[Frame]] = {}


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A frame's fields; KIND is its type byte, CHANNEL the kind of stream it travels on."""

    KIND: ClassVar[int]
    CHANNEL: ClassVar[str]

    def __init_subclass__(cls, kind: int, channel: str) -> None:
        cls.KIND, cls.CHANNEL = kind, channel
        KINDS[kind] = cls


@dataclass(frozen=True, kw_only=True)
class Hello(Frame, kind=0x01, channel=CONTROL):
    version: int = uint(0xFFFF)
    party_pubkey: bytes = data(33)
    party_role: str = one_of("runner", "validator")
    block_height: int = uint()
    challenge_nonce: bytes = data(32)


@dataclass(frozen=True, kw_only=True)
class HelloAck(Frame, kind=0x02, channel=CONTROL):
    version: int = uint(0xFFFF)
    party_pubkey: bytes = data(33)
    party_role: str = one_of("runner", "validator")
    signed_challenge: bytes = data(65)
    block_height: int = uint()


@dataclass(frozen=True, kw_only=True)
class HeartbeatPing(Frame, kind=0x10, channel=CONTROL):
    block_height: int = uint()
    nonce: int = uint()
    signed: bytes = data(65)


@dataclass(frozen=True, kw_only=True)
class HeartbeatPong(Frame, kind=0x11, channel=CONTROL):
    block_height: int = uint()
    validator_signed: bytes = data(65)


@dataclass(frozen=True, kw_only=True)
class BackpressureSignal(Frame, kind=0x12, channel=CONTROL):
    active_jobs: int = uint(2**32 - 1)
    max_concurrent: int = uint(2**32 - 1)
    accepting_new: bool = flag()
    reason: str | None = text(optional=True)


@dataclass(frozen=True, kw_only=True)
class CapabilityDelta(Frame, kind=0x13, channel=CONTROL):
    block_height: int = uint()
    added_capabilities: list[str] = texts()
    removed_capabilities: list[str] = texts()
    added_entitlements: list[str] = texts()
    removed_entitlements: list[str] = texts()
    signed: bytes = data(65)


@dataclass(frozen=True, kw_only=True)
class OpenJobs(Frame, kind=0x14, channel=CONTROL):
    job_ids: list[bytes] = job_ids()


@dataclass(frozen=True, kw_only=True)
class JobAssignment(Frame, kind=0x20, channel=JOB):
    job_id: bytes = data(32)
    submitter: bytes = data(20)
    nonce: int = uint()
    job_spec: bytes = data()
    block_height: int = uint()
    deadline_block: int = uint()
    validator_signed: bytes = data(65)

    def is_of_its_job(self) -> bool:
        """Whether the id is that of a job with this specification, submitter and nonce."""
        nonce = self.nonce.to_bytes(8, "big")
        return self.job_id == keccak256(self.submitter, nonce, keccak256(self.job_spec))


@dataclass(frozen=True, kw_only=True)
class JobAck(Frame, kind=0x21, channel=JOB):
    job_id: bytes = data(32)
    deadline_block: int = uint()
    status: str = one_of("accepted", "duplicate", "reject")
    reason: str | None = one_of(*REJECT_REASONS, optional=True)
    signed: bytes = data(65)


@dataclass(frozen=True, kw_only=True)
class JobProgress(Frame, kind=0x22, channel=JOB):
    job_id: bytes = data(32)
    fraction: int = uint(100)
    detail: str | None = text(optional=True)


@dataclass(frozen=True, kw_only=True)
class JobResult(Frame, kind=0x23, channel=JOB):
    job_id: bytes = data(32)
    result_data: bytes = data()
    runner_signed: bytes = data(65)


@dataclass(frozen=True, kw_only=True)
class JobCancel(Frame, kind=0x24, channel=JOB):
    job_id: bytes = data(32)
    deadline_block: int = uint()
    reason: str = one_of(*CANCEL_REASONS)
    validator_signed: bytes = data(65)


@dataclass(frozen=True, kw_only=True)
class JobProof(Frame, kind=0x25, channel=JOB):
    job_id: bytes = data(32)
    proof: bytes = data()


@dataclass(frozen=True, kw_only=True)
class Errand(Frame, kind=0x26, channel=JOB):
    errand_id: bytes = data(32)
    agent_pubkey: bytes = data(33)
    label: bytes = data(32)
    errand_spec: bytes = data()
    deadline_block: int = uint()
    agent_signed: bytes = data(65)


@dataclass(frozen=True, kw_only=True)
class JobCommit(Frame, kind=0x80, channel=JOB):
    job_id: bytes = data(32)
    deadline_block: int = uint()
    commitment: bytes = data(32)
    runner_signed: bytes = data(65)


@dataclass(frozen=True, kw_only=True)
class JobReveal(Frame, kind=0x81, channel=JOB):
    job_id: bytes = data(32)
    validator_signed: bytes = data(65)


@dataclass(frozen=True, kw_only=True)
class JobAggregate(Frame, kind=0x82, channel=JOB):
    job_id: bytes = data(32)
    reveals: list[dict[str, bytes]] = reveals()
    validator_signed: bytes = data(65)


@dataclass(frozen=True, kw_only=True)
class JobAggregated(Frame, kind=0x83, channel=JOB):
    job_id: bytes = data(32)
    signed: bytes = data(65)


@dataclass(frozen=True, kw_only=True)
class JobFailure(Frame, kind=0x84, channel=JOB):
    job_id: bytes = data(32)
    reason: str = reason()
    runner_signed: bytes = data(65)


@dataclass(frozen=True, kw_only=True)
class Goodbye(Frame, kind=0xF0, channel=CONTROL):
    reason: str = text()


def encode(frame: Frame) -> bytes:
    """The frame's bytes, including its length."""
    pairs = ((found.name, getattr(frame, found.name)) for found in fields(frame))
    present = {name: value for name, value in pairs if value is not None}
    payload = cbor2.dumps(present, canonical=True)
    return (1 + len(payload)).to_bytes(4, "big") + bytes([frame.KIND]) + payload


def decode(channel: str, body: bytes) -> Frame | None:
    """The frame in a type and payload; None if its type is to be ignored."""
    kind = KINDS.get(body[0]) if body else None
    if kind is None or kind.CHANNEL != channel:
        if channel == JOB and body and body[0] >= 0x80:
            return None
        found = f"type {body[0]:#04x}" if body else "nothing"
        raise ProtocolError("malformed_frame", f"{found} on a {channel} stream")
    try:
        value = cbor2.loads(body[1:])
        canonical = cbor2.dumps(value, canonical=True) == body[1:]
    except (cbor2.CBORError, ValueError, TypeError, RecursionError) as error:
        raise ProtocolError("malformed_frame", f"{kind.__name__}: {error}") from error
    if not isinstance(value, dict) or not canonical:
        raise ProtocolError("malformed_frame", f"{kind.__name__}: not a map in its one valid form")
    frame = kind(**_checked(kind, value))
    if isinstance(frame, JobAck) and (frame.reason is None) == (frame.status == "reject"):
        raise ProtocolError("malformed_frame", "JobAck: only `reject` has a reason")
    return frame


def _checked(kind: type[Frame], value: dict[Any, Any]) -> dict[str, Any]:
    """The fields, if they belong to the frame and have permitted values."""
    known = {found.name: found.metadata for found in fields(kind)}
    for name in value.keys() - known.keys():
        raise ProtocolError("malformed_frame", f"{kind.__name__}: unknown field {name!r}")
    for name, rules in known.items():
        wanted = name in value or not rules["optional"]
        if wanted and not (name in value and rules["check"](value[name])):
            raise ProtocolError("malformed_frame", f"{kind.__name__}: {name} is missing or wrong")
    return value


class FrameReader:
    """Finds the frames in one stream's bytes."""

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._bytes = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """Takes a chunk and yields the frames that it completes.

        Raises ProtocolError at the first malformed one; do not use the reader afterwards.
        """
        self._bytes += chunk
        while len(self._bytes) >= 4:
            length = int.from_bytes(self._bytes[:4], "big")
            if length > LIMITS[self._channel]:
                raise ProtocolError("frame_too_large", f"{length} on a {self._channel} stream")
            if len(self._bytes) < 4 + length:
                return
            body = bytes(self._bytes[4 : 4 + length])
            del self._bytes[: 4 + length]
            frame = decode(self._channel, body)
            if frame is not None:
                yield frame


def digest(chain_id: int, frame: str, *parts: int | bytes | str) -> bytes:
    """The signed digest of a frame: its parts, bound to its name and to the chain."""

    def raw(part: int | bytes | str) -> bytes:
        if isinstance(part, int):
            return part.to_bytes(8, "big")
        return part.encode() if isinstance(part, str) else part

    domain = b"cowboy-cip11/" + frame.encode() + b"/v1"
    return keccak256(domain, raw(chain_id), *map(raw, parts))

"""One connection to a validator ("Transport", "The handshake", "Heartbeats", "Jobs", "Committees").

`connect` opens it and waits until it has ended. In between it answers heartbeats by itself, and
tells its owner, the runner, of all else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import QuicProtocolVersion

import keys
import wire
from keys import SecretKey, keccak256
from wire import ProtocolError

ALPN = "cowboy/cip11/1"
IDLE_SECONDS = 10.0
HANDSHAKE_SECONDS = 5.0
GOODBYE_SECONDS = 1.0
MAX_JOB_STREAMS = 64
MAX_PEER_STREAMS = 128
MAX_SPEC_BYTES = 65_536
"""The maximum length of a specification that is hashed, which takes 0.2 s in Python."""

NO_ERROR = 0
BAD_CERTIFICATE = 0x100 + 42
"""A TLS alert as a QUIC error (RFC 9001 §4.8)."""


class Owner(Protocol):
    """The interface of the runner for its connections. None of its methods blocks."""

    chain_id: int
    key: SecretKey

    def head(self) -> int:
        """The presumed height of the chain."""

    def established(self, connection: Connection) -> None:
        """The validator has accepted the runner."""

    def told(self, connection: Connection, height: int) -> None:
        """The validator has a new block."""

    def assigned(self, connection: Connection, assignment: wire.JobAssignment) -> str | None:
        """A job; returns the answer: `accepted`, `duplicate` or `reject(REASON)`, or None if
        `Connection.answer` will follow."""

    def cancelled(self, connection: Connection, cancel: wire.JobCancel) -> None:
        """The validator says that the job is no longer the runner's."""

    def delivered(self, connection: Connection, job_id: bytes) -> None:
        """The validator has taken the job's result, the commitment to it, or the failure."""

    def undelivered(self, connection: Connection, job_id: bytes) -> None:
        """The job's stream broke, before its result was sent or before it was taken."""

    def reveal(self, job_id: bytes) -> wire.JobResult | None:
        """The result of a job that the runner has committed to."""

    def aggregates(self, aggregate: wire.JobAggregate) -> bool:
        """Whether the runner signs the results of its committee."""


class State(Enum):
    """The state of a connection."""

    OPENING = auto()
    GREETED = auto()
    CHALLENGED = auto()
    PROVEN = auto()
    ESTABLISHED = auto()
    CLOSED = auto()


class Phase(Enum):
    """The state of a job stream."""

    OPENED = auto()
    ASSIGNED = auto()
    ACCEPTED = auto()
    DELIVERING = auto()
    CHECKING = auto()
    OVER = auto()


@dataclass
class JobStream:
    """A stream about one job."""

    phase: Phase
    job_id: bytes = b""
    deadline: int = 0
    reader: wire.FrameReader = field(default_factory=lambda: wire.FrameReader(wire.JOB))

    def holds(self, job_id: bytes) -> bool:
        """Whether the job was accepted on this stream."""
        return self.phase is Phase.ACCEPTED and self.job_id == job_id


class Connection(QuicConnectionProtocol):
    """The runner's end of a connection. It is over when `ended` has its reason."""

    def __init__(self, quic: QuicConnection, owner: Owner, validator: bytes) -> None:
        super().__init__(quic)
        loop = asyncio.get_running_loop()
        self.validator = validator
        self.ended: asyncio.Future[str] = loop.create_future()
        self.was_established = False
        self._owner = owner
        self._state = State.OPENING
        self._nonce = os.urandom(32)
        self._challenge = b""
        self._reader = wire.FrameReader(wire.CONTROL)
        self._told = 0
        self._pings = 0
        self._control = -1
        self._streams: dict[int, JobStream] = {}
        self._checks: set[asyncio.Task[None]] = set()
        self._deadline = loop.call_later(HANDSHAKE_SECONDS, self._expire)

    # Called by the owner

    def deliver(self, result: wire.JobResult | wire.JobCommit | wire.JobFailure) -> bool:
        """Sends a result, on the stream that accepted the job, else on a new one. Commitments and
        failures are sent in the same way.

        The owner is notified of the outcome. False: not possible now, try another connection.
        """
        if self._state is not State.ESTABLISHED:
            return False
        open_ = self._streams.items()
        held = (number for number, stream in open_ if stream.holds(result.job_id))
        stream_id = next(held, None)
        if stream_id is None:
            # The validator's streams have odd numbers.
            if sum(number % 2 == 0 for number in self._streams) >= MAX_JOB_STREAMS:
                return False
            stream_id = self._quic.get_next_available_stream_id()
            self._streams[stream_id] = JobStream(Phase.DELIVERING, result.job_id)
        self._streams[stream_id].phase = Phase.DELIVERING
        self._send(stream_id, result, end=True)
        return True

    def answer(self, job_id: bytes, answer: str) -> None:
        """Answers the waiting assignments of a job."""
        for stream_id, stream in list(self._streams.items()):
            if stream.phase is Phase.ASSIGNED and stream.job_id == job_id:
                self._answer(stream_id, stream, answer)

    def started(self, job_id: bytes) -> None:
        """Reports that work on a job has begun, if it was accepted on this connection."""
        for stream_id, stream in self._streams.items():
            if stream.holds(job_id):
                self._send(stream_id, wire.JobProgress(job_id=job_id, fraction=0))

    def name_open(self, job_ids: list[bytes]) -> None:
        """Lists the runner's open jobs, so that the validator cancels those that are over."""
        if self._state is State.ESTABLISHED:
            self._send(self._control, wire.OpenJobs(job_ids=job_ids[:1024]))

    def holds(self, job_id: bytes) -> bool:
        """Whether the job was accepted on a stream of this connection that is still open."""
        return any(stream.holds(job_id) for stream in self._streams.values())

    def tell_load(self, active_jobs: int, max_concurrent: int) -> None:
        """Reports the number of running jobs. A busy runner still accepts more, because the chain
        never assigns too many."""
        if self._state is State.ESTABLISHED:
            load = wire.BackpressureSignal(
                active_jobs=active_jobs, max_concurrent=max_concurrent, accepting_new=True
            )
            self._send(self._control, load)

    def goodbye(self, reason: str) -> None:
        """Ends the connection, and tells the validator the reason."""
        if self._state is State.CLOSED:
            return
        if self._control < 0:
            self.close(NO_ERROR, reason)
        else:
            # It is closed later, because that would overtake the goodbye.
            self._send(self._control, wire.Goodbye(reason=reason), end=True)
        self._end(f"said goodbye: {reason}")

    async def gone(self) -> None:
        """After the end: waits until the goodbye has reached the validator, which then closes, and
        closes the socket."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.wait_closed(), GOODBYE_SECONDS)
        self.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.wait_closed(), GOODBYE_SECONDS)
        if self._transport is not None:
            self._transport.close()

    # Called by the network

    def error_received(self, exc: Exception) -> None:
        """The address has no listener."""
        self.close(NO_ERROR, str(exc))
        self._end(str(exc))

    def quic_event_received(self, event: events.QuicEvent) -> None:
        try:
            self._handle(event)
        except ProtocolError as error:
            self.goodbye(error.reason)

    def _handle(self, event: events.QuicEvent) -> None:
        match event:
            case events.ConnectionTerminated(reason_phrase=reason):
                self._end(f"closed: {reason or 'no reason'}")
            case _ if self._state is State.CLOSED:
                pass
            case events.HandshakeCompleted():
                self._greet()
            case events.StreamDataReceived(stream_id=number, data=data, end_stream=end):
                self._received(number, data)
                if end:
                    self._stream_ended(number, cleanly=True)
            case events.StreamReset(stream_id=number):
                self._stream_ended(number, cleanly=False)
            case events.StopSendingReceived(stream_id=number):
                self._stopped(number)

    def _received(self, stream_id: int, data: bytes) -> None:
        if stream_id == self._control:
            for frame in self._reader.feed(data):
                self._control_frame(frame)
            return
        if stream_id not in self._streams:
            self._admit(stream_id)
        stream = self._streams[stream_id]
        if stream.phase is not Phase.OVER:
            for frame in stream.reader.feed(data):
                self._job_frame(stream_id, stream, frame)

    def _admit(self, stream_id: int) -> None:
        """The validator has opened a stream."""
        if self._state not in (State.PROVEN, State.ESTABLISHED) or stream_id % 4 != 1:
            raise ProtocolError("malformed_frame", f"stream {stream_id} is out of place")
        if sum(number % 2 for number in self._streams) >= MAX_PEER_STREAMS:
            raise ProtocolError("rate_limited", f"more than {MAX_PEER_STREAMS} streams")
        self._streams[stream_id] = JobStream(Phase.OPENED)

    def _stream_ended(self, stream_id: int, cleanly: bool) -> None:
        if stream_id == self._control:
            self.close(NO_ERROR, "the control stream ended")
            self._end("the validator ended the control stream")
            return
        stream = self._streams.pop(stream_id, None)
        if stream is None:
            return
        if stream.phase is Phase.DELIVERING and cleanly:
            self._owner.delivered(self, stream.job_id)
        else:
            if stream.phase is Phase.ACCEPTED and cleanly:
                self._finish(stream_id)
            self._give_up(stream)

    def _stopped(self, stream_id: int) -> None:
        """The validator no longer reads from the stream, but may still write."""
        if stream_id == self._control:
            self._stream_ended(stream_id, cleanly=False)
        elif stream_id in self._streams:
            self._give_up(self._streams[stream_id])

    def _give_up(self, stream: JobStream) -> None:
        phase, stream.phase = stream.phase, Phase.OVER
        if phase in (Phase.ACCEPTED, Phase.DELIVERING):
            self._owner.undelivered(self, stream.job_id)

    # The handshake

    def _greet(self) -> None:
        """After TLS: checks the peer's identity, and opens the control stream."""
        # aioquic's access to the peer's certificates is private; requirements.txt pins it.
        tls = self._quic.tls
        chain = [tls._peer_certificate, *tls._peer_certificate_chain]
        try:
            found = keys.bound_key([peer for peer in chain if peer is not None])
            if found != self.validator:
                raise keys.IdentityError(f"the peer is {found.hex()}, not the dialled one")
        except keys.IdentityError as error:
            self.close(BAD_CERTIFICATE, str(error))
            self._end(str(error))
            return
        self._control = self._quic.get_next_available_stream_id()
        self._state = State.GREETED
        self._send(
            self._control,
            wire.Hello(
                version=wire.VERSION,
                party_pubkey=self._owner.key.public,
                party_role="runner",
                block_height=self._owner.head(),
                challenge_nonce=self._nonce,
            ),
        )

    def _control_frame(self, frame: wire.Frame) -> None:
        match self._state, frame:
            case State.CLOSED, _:
                pass
            case _, wire.Goodbye(reason=reason):
                self.close(NO_ERROR, reason)
                self._end(f"goodbye: {reason}")
            case State.GREETED, wire.Hello() as hello:
                self._check_hello(hello)
            case State.CHALLENGED, wire.HelloAck() as ack:
                self._check_ack(ack)
            case State.PROVEN | State.ESTABLISHED, wire.HeartbeatPong() as pong:
                self._pong(pong)
            case _:
                name = type(frame).__name__
                raise ProtocolError("malformed_frame", f"{name} while {self._state.name}")

    def _check_hello(self, hello: wire.Hello) -> None:
        self._check_party(hello)
        if hello.challenge_nonce == self._nonce:
            raise ProtocolError("replayed_nonce", "the validator's nonce is the runner's")
        self._challenge = hello.challenge_nonce
        self._state = State.CHALLENGED

    def _check_ack(self, ack: wire.HelloAck) -> None:
        self._check_party(ack)
        self._verify(ack.signed_challenge, "HelloAck", self._nonce)
        self._state = State.PROVEN
        self._send(
            self._control,
            wire.HelloAck(
                version=wire.VERSION,
                party_pubkey=self._owner.key.public,
                party_role="runner",
                signed_challenge=self._sign("HelloAck", self._challenge),
                block_height=self._owner.head(),
            ),
        )

    def _check_party(self, frame: wire.Hello | wire.HelloAck) -> None:
        if frame.version != wire.VERSION:
            raise ProtocolError("unsupported_version", f"version {frame.version}")
        if frame.party_role != "validator":
            raise ProtocolError("wrong_role", f"the peer is a {frame.party_role}")
        if frame.party_pubkey != self.validator:
            raise ProtocolError("identity_mismatch", f"the peer is {frame.party_pubkey.hex()}")

    # Heartbeats

    def _pong(self, pong: wire.HeartbeatPong) -> None:
        first, height = self._state is State.PROVEN, pong.block_height
        if not first and height <= self._told:
            return
        self._verify(pong.validator_signed, "HeartbeatPong", height, self._owner.key.public)
        self._told = height
        self._pings += 1
        self._send(
            self._control,
            wire.HeartbeatPing(
                block_height=height,
                nonce=self._pings,
                signed=self._sign("HeartbeatPing", height, self._pings),
            ),
        )
        if first:
            self._state = State.ESTABLISHED
            self.was_established = True
            self._deadline.cancel()
            self._owner.established(self)
        self._owner.told(self, height)

    # Jobs

    def _job_frame(self, stream_id: int, stream: JobStream, frame: wire.Frame) -> None:
        match stream.phase, frame:
            case Phase.OPENED, wire.JobAssignment(job_spec=spec) as assignment if (
                len(spec) > MAX_SPEC_BYTES
            ):
                stream.job_id, stream.deadline = assignment.job_id, assignment.deadline_block
                self._answer(stream_id, stream, "reject(invalid_spec)")
            case Phase.OPENED, wire.JobAssignment() as assignment:
                self._verify(
                    assignment.validator_signed,
                    "JobAssignment",
                    assignment.job_id,
                    keccak256(assignment.job_spec),
                    assignment.block_height,
                    assignment.deadline_block,
                    self._owner.key.public,
                )
                stream.phase = Phase.ASSIGNED
                stream.job_id, stream.deadline = assignment.job_id, assignment.deadline_block
                answer = self._owner.assigned(self, assignment)
                if answer:
                    self._answer(stream_id, stream, answer)
            case Phase.OPENED, wire.Errand() as errand:
                # An operator names the agents that a runner works for; this runner has none.
                stream.job_id, stream.deadline = errand.errand_id, errand.deadline_block
                self._answer(stream_id, stream, "reject(missing_entitlement)")
            case Phase.OPENED, wire.JobProof():
                # This runner ends jobs only by agreement or at their deadlines.
                self._finish(stream_id)
                stream.phase = Phase.OVER
            case Phase.ASSIGNED | Phase.ACCEPTED | Phase.DELIVERING, wire.JobProof():
                # This runner starts jobs only by agreement.
                pass
            case (
                Phase.OPENED | Phase.ASSIGNED | Phase.ACCEPTED | Phase.DELIVERING,
                wire.JobCancel() as cancel,
            ):
                if stream.phase is not Phase.OPENED and cancel.job_id != stream.job_id:
                    raise ProtocolError("malformed_frame", "JobCancel: for another job")
                self._verify(
                    cancel.validator_signed,
                    "JobCancel",
                    cancel.job_id,
                    cancel.deadline_block,
                    cancel.reason,
                )
                if stream.phase is not Phase.DELIVERING:
                    self._finish(stream_id)
                stream.phase = Phase.OVER
                self._owner.cancelled(self, cancel)
            case Phase.OPENED, wire.JobReveal() as asked:
                self._verify(asked.validator_signed, "JobReveal", asked.job_id)
                self._reply(stream_id, stream, self._owner.reveal(asked.job_id))
            case Phase.OPENED, wire.JobAggregate() as aggregate:
                stream.phase = Phase.CHECKING
                check = asyncio.create_task(self._aggregate(stream_id, stream, aggregate))
                self._checks.add(check)
                check.add_done_callback(self._checks.discard)
            case Phase.OVER, _:
                pass
            case _:
                name = type(frame).__name__
                raise ProtocolError("malformed_frame", f"{name} while {stream.phase.name}")

    async def _aggregate(
        self, stream_id: int, stream: JobStream, aggregate: wire.JobAggregate
    ) -> None:
        """Checks a committee's results, and signs them if the owner agrees."""
        chain_id, job_id = self._owner.chain_id, aggregate.job_id
        # In a thread, because it may take two seconds and connections must continue.
        digest, are_signed = await asyncio.to_thread(check_reveals, chain_id, aggregate)
        if self._state is State.CLOSED or stream.phase is Phase.OVER:
            return
        try:
            self._verify(aggregate.validator_signed, "JobAggregate", job_id, digest)
            if not are_signed:
                raise ProtocolError("bad_signature", "JobResult in a JobAggregate")
        except ProtocolError as error:
            self.goodbye(error.reason)
            return
        answer = None
        if self._owner.aggregates(aggregate):
            signed = self._sign("JobAggregated", job_id, digest)
            answer = wire.JobAggregated(job_id=job_id, signed=signed)
        self._reply(stream_id, stream, answer)

    def _reply(self, stream_id: int, stream: JobStream, answer: wire.Frame | None) -> None:
        """Answers a request, or ends its stream without an answer."""
        stream.phase = Phase.OVER
        if answer:
            self._send(stream_id, answer, end=True)
        else:
            self._finish(stream_id)

    def _answer(self, stream_id: int, stream: JobStream, answer: str) -> None:
        status, _, reason = answer.rstrip(")").partition("(")
        accepted = status == "accepted"
        stream.phase = Phase.ACCEPTED if accepted else Phase.OVER
        ack = wire.JobAck(
            job_id=stream.job_id,
            deadline_block=stream.deadline,
            status=status,
            reason=reason or None,
            signed=self._sign("JobAck", stream.job_id, stream.deadline, answer),
        )
        self._send(stream_id, ack, end=not accepted)

    # Sending and signing

    def _sign(self, frame: str, *parts: int | bytes | str) -> bytes:
        return self._owner.key.sign(wire.digest(self._owner.chain_id, frame, *parts))

    def _verify(self, signature: bytes, frame: str, *parts: int | bytes | str) -> None:
        signed = wire.digest(self._owner.chain_id, frame, *parts)
        if not keys.verify(self.validator, signed, signature):
            raise ProtocolError("bad_signature", frame)

    def _send(self, stream_id: int, frame: wire.Frame, end: bool = False) -> None:
        self._quic.send_stream_data(stream_id, wire.encode(frame), end_stream=end)
        self.transmit()

    def _finish(self, stream_id: int) -> None:
        self._quic.send_stream_data(stream_id, b"", end_stream=True)
        self.transmit()

    def _expire(self) -> None:
        self.close(NO_ERROR, "handshake timeout")
        self._end(f"no handshake within {HANDSHAKE_SECONDS} s")

    def _end(self, reason: str) -> None:
        """Closes the connection and gives up its open job streams."""
        if self._state is State.CLOSED:
            return
        self._state = State.CLOSED
        self._deadline.cancel()
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            self._give_up(stream)
        self.ended.set_result(reason)


def sign_result(chain_id: int, key: SecretKey, job_id: bytes, result: bytes) -> wire.JobResult:
    """The signed frame with a job's result. Hashing takes a second for 350 KB."""
    signed = key.sign(wire.digest(chain_id, "JobResult", job_id, keccak256(result)))
    return wire.JobResult(job_id=job_id, result_data=result, runner_signed=signed)


def sign_commit(
    chain_id: int, key: SecretKey, result: wire.JobResult, deadline: int
) -> wire.JobCommit:
    """The signed frame with a commitment to a result. Hashing takes as long."""
    job_id, commitment = result.job_id, keccak256(result.result_data, result.runner_signed)
    signed = key.sign(wire.digest(chain_id, "JobCommit", job_id, deadline, commitment))
    return wire.JobCommit(
        job_id=job_id, deadline_block=deadline, commitment=commitment, runner_signed=signed
    )


def sign_failure(chain_id: int, key: SecretKey, job_id: bytes, reason: str) -> wire.JobFailure:
    """The signed frame with the reason of a failure, truncated if it is too long."""
    told = reason.encode()[: wire.MAX_REASON_BYTES].decode(errors="ignore")
    signed = key.sign(wire.digest(chain_id, "JobFailure", job_id, told))
    return wire.JobFailure(job_id=job_id, reason=told, runner_signed=signed)


def check_reveals(chain_id: int, aggregate: wire.JobAggregate) -> tuple[bytes, bool]:
    """The digest of a committee's results, and whether each is signed by its runner."""
    digest, are_signed = b"", True
    for reveal in aggregate.reveals:
        hashed = keccak256(reveal["result_data"])
        signed = wire.digest(chain_id, "JobResult", aggregate.job_id, hashed)
        are_signed &= keys.recover(signed, reveal["runner_signed"]) == reveal["runner"]
        digest += reveal["runner"] + hashed
    return keccak256(digest), are_signed


class Dialler:
    """Makes connections, all with one certificate."""

    def __init__(self, owner: Owner) -> None:
        made = keys.certificate(owner.key)
        self._owner = owner
        self._configuration = QuicConfiguration(
            alpn_protocols=[ALPN],
            certificate=made.x509,
            private_key=made.key,
            idle_timeout=IDLE_SECONDS,
            supported_versions=[QuicProtocolVersion.VERSION_1],
            # There is no authority: `Connection` checks the certificate's key.
            verify_mode=ssl.CERT_NONE,
        )

    async def connect(self, address: tuple[str, int], validator: bytes) -> Connection:
        """Begins a connection to the validator with this key. Raises OSError."""
        quic = QuicConnection(configuration=self._configuration)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_datagram_endpoint(
            lambda: Connection(quic, self._owner, validator), remote_addr=address
        )
        connection.connect(address)
        return connection

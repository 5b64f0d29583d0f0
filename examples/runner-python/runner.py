"""A runner: its connections, its jobs, and their results ("Jobs", "Committees", "The end of a
connection")."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass, field

import wire
import work
from chain import ApiError, Chain
from connection import Connection, Dialler, sign_commit, sign_failure, sign_result
from keys import SecretKey
from validators import Refused, Validators

log = logging.getLogger("runner")

BACKOFF_SECONDS = 0.1
MAX_BACKOFF_SECONDS = 30.0
ATTEMPT_AFTER_DUPLICATE = 9
"""Keeps two processes with one key from replacing each other ten times a second."""

HEARTBEAT_BLOCKS = 256
"""The maximum age of the last heartbeat on the chain: a quarter of the limit."""

LOOK_SECONDS = 0.5
"""The minimum interval between two requests for a proof of the validators."""
FIRST_LOOKS = 20
UNAVAILABLE = 503
"""The HTTP status of an answer that is not available yet."""

MAX_JOBS = 256
"""The maximum number of remembered jobs, including ended ones; each may hold half a megabyte."""


def backoff(attempt: int) -> float:
    """The delay in seconds after a number of attempts since the last completed handshake."""
    nominal: float = min(BACKOFF_SECONDS * 2 ** min(attempt, 32), MAX_BACKOFF_SECONDS)
    return nominal * random.uniform(0.75, 1.25)


@dataclass
class Job:
    """An accepted job, until its deadline."""

    deadline: int
    validators: set[bytes] = field(default_factory=set)
    """The validators that assigned it."""
    cancelled: set[bytes] = field(default_factory=set)
    """The validators that cancelled it."""
    task: asyncio.Task[None] | None = None
    """The running work."""
    result: wire.JobResult | None = None
    """Its result, until the job is no longer the runner's."""
    commit: wire.JobCommit | None = None
    """The commitment to the result, if the job is a committee's."""
    failure: wire.JobFailure | None = None
    """The reason why it has no result."""
    carrier: Connection | None = None
    """The connection that is delivering its outcome."""
    delivered: bool = False
    taken_by: Connection | None = None
    """The connection that took the commitment, until a validator asks for the result."""
    aggregated_at: int = -1
    """The height at which the runner last signed the committee's results."""

    def delivery(self) -> wire.JobResult | wire.JobCommit | wire.JobFailure | None:
        """The frame to deliver to a validator."""
        return self.failure or self.commit or self.result

    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        done = self.delivered and not self.commit
        return self.task is None and (self.delivery() is None or done)


class Runner:
    """A registered runner; `run` runs it."""

    def __init__(
        self,
        chain: Chain,
        key: SecretKey,
        chain_id: int,
        max_concurrent: int,
        voters: list[bytes] | None,
    ) -> None:
        """`voters` are the validators trusted from the start, by their Ed25519 keys; None for those
        that the API names first."""
        self.chain_id = chain_id
        self.key = key
        self._chain = chain
        self._validators = Validators(chain_id, voters)
        self._wanted: set[bytes] = set()
        """The validators to connect to."""
        self._kept: dict[bytes, asyncio.Task[None]] = {}
        """The tasks that keep them connected."""
        self._unproved = ""
        """The reason why the last proof was not accepted."""
        self._max_concurrent = max_concurrent
        self._names: dict[bytes, str] = {}
        self._open: set[Connection] = set()
        self._connections: dict[bytes, Connection] = {}
        self._heights: dict[bytes, int] = {}
        self._jobs: dict[bytes, Job] = {}
        self._agreeing = 1
        """Number of validators that must agree: one more than may be dishonest."""
        self._proposed: dict[bytes, dict[bytes, tuple[int, int]]] = {}
        """Assignments that too few validators have made in the same way: block and deadline, by
        validator and job."""
        self._rejected: dict[tuple[bytes, int], str] = {}
        """The answer to each rejected attempt, by job and deadline."""
        self._dialler = Dialler(self)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Says goodbye to every validator; `run` then returns soon."""
        self._stopping.set()
        for connection in self._open:
            connection.goodbye("shutting_down")

    async def run(self) -> None:
        """Keeps a connection to each validator of the subset, until it is stopped. Raises Refused
        if the first proof of the validators is invalid."""
        beating = asyncio.create_task(self._beat())
        try:
            self._follow(await self._first_proof())
            while not self._stopping.is_set():
                await self._pause(max(LOOK_SECONDS, await self._block_seconds()))
                await self._look()
            await asyncio.gather(*self._kept.values())
        finally:
            working = [job.task for job in self._jobs.values() if job.task]
            tasks = [*self._kept.values(), beating, *working]
            for task in tasks:
                task.cancel()
            # Jobs kill their processes and remove their folders.
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _first_proof(self) -> bytes:
        """The first proof of the validators; a new chain has none for a while."""
        for _ in range(FIRST_LOOKS):
            try:
                return await self._chain.proof_of_validators()
            except ApiError as error:
                if error.status != UNAVAILABLE:
                    raise
            await self._pause(LOOK_SECONDS)
        return await self._chain.proof_of_validators()

    async def _look(self) -> None:
        """Follows changes of the validators. Without a valid proof, nothing changes."""
        reason = ""
        try:
            if not self._stopping.is_set():
                self._follow(await self._chain.proof_of_validators())
        except (ApiError, Refused) as error:
            reason = str(error)
        if reason and not self._unproved:
            log.warning("who validates now is not proved, nothing changes: %s", reason)
        self._unproved = reason

    def _follow(self, proof: bytes) -> None:
        """Updates the validators from a proof, and connects to the subset. Raises Refused."""
        roster = self._validators.believe(proof)
        self._agreeing = roster.agreeing()
        self._wanted = set(roster.targets(self.key.public))
        for connection in self._open:
            if connection.validator not in self._wanted:
                connection.goodbye("shutting_down")
        for public in self._wanted:
            if public not in self._kept or self._kept[public].done():
                self._kept[public] = asyncio.create_task(self._keep(public))

    async def _block_seconds(self) -> float:
        try:
            return await self._chain.block_seconds()
        except ApiError:
            return MAX_BACKOFF_SECONDS / 10

    async def _pause(self, seconds: float) -> None:
        """Waits, or returns early when the runner is stopped."""
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            pass

    async def _beat(self) -> None:
        """Keeps the heartbeat on the chain fresh."""
        while True:
            pause = MAX_BACKOFF_SECONDS
            try:
                await self._chain.heartbeat(self.key, HEARTBEAT_BLOCKS)
                pause = max(0.5, await self._chain.block_seconds() * HEARTBEAT_BLOCKS / 4)
            except ApiError as error:
                log.warning("no heartbeat on the chain, tried again later: %s", error)
            await asyncio.sleep(pause)

    # Connections

    async def _keep(self, public: bytes) -> None:
        """Keeps a validator connected, as long as it is in the subset."""
        attempt = 0
        while not self._stopping.is_set() and public in self._wanted:
            try:
                connection = await self._connect(public)
                reason = await self._serve(connection)
                if connection.was_established:
                    attempt = 0
                if reason == "goodbye: duplicate_connection":
                    attempt = ATTEMPT_AFTER_DUPLICATE
            except (ApiError, OSError) as error:
                reason = str(error)
            if self._stopping.is_set() or public not in self._wanted:
                return
            pause = backoff(attempt)
            attempt += 1
            log.info("%s: %s; again in %.1f s", self._name(public), reason, pause)
            await self._pause(pause)

    def _name(self, public: bytes) -> str:
        return self._names.get(public, f"0x{public.hex()}")

    async def _serve(self, connection: Connection) -> str:
        """Waits for the end of a connection; returns the reason."""
        self._open.add(connection)
        if self._stopping.is_set():
            connection.goodbye("shutting_down")
        reason = await connection.ended
        self._open.remove(connection)
        await connection.gone()
        return reason

    async def _connect(self, public: bytes) -> Connection:
        # A restarted validator may listen elsewhere.
        for found in await self._chain.validators():
            if found.public == public and found.address:
                self._names[public] = found.name
                return await self._dialler.connect(found.address, public)
        raise OSError("the validator does not run")

    def head(self) -> int:
        """The lower median of the reported heights, which one of three validators cannot raise."""
        heights = sorted(self._heights.values())
        return heights[(len(heights) - 1) // 2] if heights else 0

    def established(self, connection: Connection) -> None:
        """A handshake is complete."""
        log.info("connected to %s", self._name(connection.validator))
        self._connections[connection.validator] = connection
        connection.ended.add_done_callback(lambda _: self._lost(connection))
        connection.tell_load(self._active(), self._max_concurrent)
        connection.name_open([job_id for job_id, job in self._jobs.items() if not job.is_over()])

    def told(self, connection: Connection, height: int) -> None:
        """A validator has a new block: drops jobs past their deadline, and retries deliveries."""
        if self._connections.get(connection.validator) is connection:
            self._heights[connection.validator] = height
        head = self.head()
        for job_id, job in list(self._jobs.items()):
            if job.deadline < head:
                self._drop(job)
                del self._jobs[job_id]
            elif not job.carrier:
                self._deliver(job)
        for answers in [found for found in self._rejected if found[1] < head]:
            del self._rejected[answers]
        for own in self._proposed.values():
            for job_id in [found for found, (_, deadline) in own.items() if deadline < head]:
                del own[job_id]

    def _lost(self, connection: Connection) -> None:
        if self._connections.get(connection.validator) is connection:
            del self._connections[connection.validator]
            self._heights.pop(connection.validator, None)
            self._proposed.pop(connection.validator, None)
        for job in self._jobs.values():
            if job.taken_by is connection:
                # The commitment may have been lost with the validator.
                job.taken_by, job.delivered = None, False
                self._deliver(job)

    def _tell_load(self) -> None:
        for connection in self._connections.values():
            connection.tell_load(self._active(), self._max_concurrent)

    # Jobs

    def _active(self) -> int:
        return sum(job.task is not None for job in self._jobs.values())

    def assigned(self, connection: Connection, assignment: wire.JobAssignment) -> str | None:
        """Accepts a job that enough validators have assigned, or returns another answer."""
        job_id, deadline = assignment.job_id, assignment.deadline_block
        validator = connection.validator
        job = self._jobs.get(job_id)
        if job and deadline <= job.deadline:
            if validator in job.validators and job.delivery() and not job.carrier:
                # The validator asks again, so it has lost its state.
                job.delivered = False
                asyncio.get_running_loop().call_soon(self._deliver, job)
            job.validators.add(validator)
            return "duplicate"
        if answer := self._rejected.get((job_id, deadline)):
            return answer
        if self.head() > deadline:
            return "reject(deadline_passed)"
        if not assignment.is_of_its_job():
            return "reject(invalid_spec)"
        try:
            command = work.parse(assignment.job_spec)
        except work.Rejected as rejected:
            return f"reject({rejected})"
        attempt = (assignment.block_height, deadline)
        own = self._proposed.setdefault(validator, {})
        own[job_id] = attempt
        while len(own) > MAX_JOBS:
            del own[next(found for found in own if found != job_id)]
        alike = [found for found, jobs in self._proposed.items() if jobs.get(job_id) == attempt]
        if len(alike) < self._agreeing:
            return None
        answer = self._begin(job_id, deadline, set(alike), command)
        for found, jobs in self._proposed.items():
            if job_id in jobs and jobs[job_id][1] <= deadline:
                del jobs[job_id]
                other = self._connections.get(found)
                if other and other is not connection:
                    other.answer(job_id, "duplicate" if answer == "accepted" else answer)
        return answer

    def _begin(
        self, job_id: bytes, deadline: int, validators: set[bytes], command: work.Command
    ) -> str:
        """Starts an attempt that enough validators have assigned, if there is capacity."""
        job = self._jobs.get(job_id)
        if job and job.task:
            job.deadline, job.cancelled = deadline, set()
            job.validators |= validators
            return "duplicate"
        self._make_room()
        if self._active() >= self._max_concurrent or len(self._jobs) >= MAX_JOBS:
            if len(self._rejected) < MAX_JOBS:
                self._rejected[job_id, deadline] = "reject(at_capacity)"
            return "reject(at_capacity)"
        log.info("job %s: %s", job_id.hex()[:16], command.program)
        earlier = job or Job(0)
        job = Job(deadline, validators)
        # The result of an earlier attempt, which may be requested until this one is done.
        job.result, job.commit, job.delivered = earlier.result, earlier.commit, True
        job.task = asyncio.create_task(self._work(job_id, job, command))
        self._jobs[job_id] = job
        self._tell_load()
        return "accepted"

    def _make_room(self) -> None:
        """Forgets the oldest ended jobs if too many are remembered."""
        over = [job_id for job_id, job in self._jobs.items() if job.is_over()]
        for job_id in over[: max(0, len(self._jobs) - MAX_JOBS + 1)]:
            del self._jobs[job_id]

    async def _work(self, job_id: bytes, job: Job, command: work.Command) -> None:
        for connection in self._connections.values():
            connection.started(job_id)
        try:
            output = await work.run(command)
            # In a thread, because hashing a long result takes a second in Python.
            result = await asyncio.to_thread(
                sign_result, self.chain_id, self.key, job_id, output
            )
            commit = None
            if command.runners > 1:
                commit = await asyncio.to_thread(
                    sign_commit, self.chain_id, self.key, result, job.deadline
                )
            job.result, job.commit, job.delivered = result, commit, False
            log.info("job %s: %d bytes", job_id.hex()[:16], len(output))
        except work.Failed as failed:
            log.warning("job %s: %s", job_id.hex()[:16], failed)
            job.failure = await asyncio.to_thread(
                sign_failure, self.chain_id, self.key, job_id, str(failed)
            )
            # The result of an earlier attempt must not be requested any longer.
            job.result, job.commit, job.delivered = None, None, False
        finally:
            job.task = None
            self._tell_load()
        self._deliver(job)

    def _deliver(self, job: Job) -> None:
        """Sends an outcome that no validator has: where the job was accepted, else anywhere."""
        delivery = job.delivery()
        if delivery is None or job.carrier or job.delivered:
            return
        job_id = delivery.job_id
        first = sorted(self._connections.values(), key=lambda found: not found.holds(job_id))
        for connection in first:
            if connection.deliver(delivery):
                job.carrier = connection
                return

    def delivered(self, connection: Connection, job_id: bytes) -> None:
        """A validator has taken a result, a commitment or a failure."""
        job = self._jobs.get(job_id)
        if job and job.carrier is connection:
            job.carrier, job.delivered = None, True
            job.taken_by = connection if job.commit else None

    def undelivered(self, connection: Connection, job_id: bytes) -> None:
        """A job's stream broke: the result is sent elsewhere, at the latest with the next block."""
        job = self._jobs.get(job_id)
        if job and job.carrier is connection:
            job.carrier = None
            asyncio.get_running_loop().call_soon(self._deliver, job)

    def reveal(self, job_id: bytes) -> wire.JobResult | None:
        """A validator asks for a committed result, so the chain has the commitment."""
        job = self._jobs.get(job_id)
        if job is None or job.commit is None:
            return None
        job.delivered, job.taken_by = True, None
        return job.result

    def aggregates(self, aggregate: wire.JobAggregate) -> bool:
        """Whether the runner signs its committee's results: if its own is among them and it has not
        signed at this height, so that only one validator submits them."""
        job, head = self._jobs.get(aggregate.job_id), self.head()
        if job is None or job.commit is None or job.result is None or job.aggregated_at >= head:
            return False
        own = {
            "runner": self.key.address,
            "result_data": job.result.result_data,
            "runner_signed": job.result.runner_signed,
        }
        if own not in aggregate.reveals:
            return False
        job.aggregated_at = head
        return True

    def cancelled(self, connection: Connection, cancel: wire.JobCancel) -> None:
        """A validator says that the chain has withdrawn a job; this counts once enough say so."""
        job_id, validator = cancel.job_id, connection.validator
        self._proposed.get(validator, {}).pop(job_id, None)
        job = self._jobs.get(job_id)
        if job is None or cancel.deadline_block < job.deadline:
            return
        job.cancelled.add(validator)
        if len(job.cancelled) >= self._agreeing:
            log.info("job %s: cancelled, %s", job_id.hex()[:16], cancel.reason)
            self._drop(job)

    def _drop(self, job: Job) -> None:
        """Stops a job, but remembers it, so that a late assignment does not start it again."""
        if job.task:
            job.task.cancel()
        job.result = job.commit = job.failure = job.carrier = job.taken_by = None

"""Parsing and running jobs ("Jobs") of the kind `custom`: commands.

A command runs in an empty folder, in its own process group. Whatever ends it (its exit, its
time limit, a cancellation), the group is killed and the folder removed before `run` returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import tempfile
from dataclasses import dataclass
from typing import Any

import cbor2

from chain import CUSTOM

MAX_RETURN_BYTES = 524_288
"""The maximum length of a result."""

DRAIN_SECONDS = 0.5
"""How long to wait for output after the command's end, if another process holds it open."""

TAIL = 1024
"""The number of bytes of a command's last error output that are kept for the log."""


class Rejected(Exception):
    """A job that is not accepted; the text is the reason in the JobAck."""


class Failed(Exception):
    """A job without a result; the text is the reason."""


@dataclass(frozen=True)
class Command:
    """A command and its bounds."""

    program: str
    args: list[str]
    env: dict[str, str]
    stdin: bytes
    max_return_bytes: int
    seconds: float
    max_memory_mb: int
    runners: int
    """Number of runners that do the same job."""


def parse(spec: bytes) -> Command:
    """The command in a job's specification. Raises Rejected."""
    try:
        value = cbor2.loads(spec)
        kind, work = value["work"]
        if kind != CUSTOM:
            raise Rejected("unsupported_kind")
        return _command(work, value["bounds"], value["verification"]["runners"])
    except (cbor2.CBORError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise Rejected("invalid_spec") from error


def _command(work: dict[str, Any], bounds: dict[str, Any], runners: int) -> Command:
    command = Command(
        program=work["program"],
        args=work["args"],
        env={name: value for name, value in work["env"]},
        stdin=work.get("stdin", b""),
        max_return_bytes=bounds["max_return_bytes"],
        seconds=bounds["expected_execution_ms"] / 1000,
        max_memory_mb=bounds["max_memory_mb"],
        runners=runners,
    )
    texts = [command.program, *command.args, *command.env, *command.env.values()]
    numbers = [command.max_return_bytes, bounds["expected_execution_ms"], command.max_memory_mb]
    numbers.append(runners)
    if not all(type(text) is str for text in texts) or type(command.stdin) is not bytes:
        raise TypeError("a command is made of texts, its input of bytes")
    if not all(type(number) is int and number > 0 for number in numbers):
        raise TypeError("bounds are numbers above 0")
    if command.max_return_bytes > MAX_RETURN_BYTES:
        raise ValueError(f"a result has at most {MAX_RETURN_BYTES} bytes")
    return command


async def run(command: Command) -> bytes:
    """Runs a command, and returns its standard output. Raises Failed."""
    with tempfile.TemporaryDirectory(prefix="job-", ignore_cleanup_errors=True) as folder:
        starting = asyncio.ensure_future(_start(command, folder))
        try:
            # A cancellation must not interrupt the start, or its process would never be killed.
            process = await asyncio.shield(starting)
            return await asyncio.wait_for(process.result(), command.seconds)
        except TimeoutError:
            raise Failed(f"not done within {command.seconds} s") from None
        finally:
            await (await starting).end()


class _Process(asyncio.SubprocessProtocol):
    """A started command: its output, up to the limit, and its end."""

    def __init__(self, limit: int) -> None:
        loop = asyncio.get_running_loop()
        self._limit = limit
        self._output = bytearray()
        self._complaints = bytearray()
        self._overflow = False
        self._over: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.SubprocessTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        if fd == 2:
            self._complaints = (self._complaints + data)[-TAIL:]
        elif len(self._output) + len(data) <= self._limit:
            self._output += data
        else:
            self._overflow = True
            self.process_exited()

    def process_exited(self) -> None:
        if not self._over.done():
            self._over.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set_result(None)

    def feed(self, stdin: bytes) -> None:
        pipe = self._transport.get_pipe_transport(0)
        assert isinstance(pipe, asyncio.WriteTransport)
        pipe.write(stdin)
        pipe.write_eof()

    def limit_memory(self, megabytes: int) -> None:
        """Limits the private memory of each of its processes, if the system can (Linux)."""
        if hasattr(resource, "prlimit"):
            bytes_ = megabytes << 20
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(self._transport.get_pid(), resource.RLIMIT_DATA, (bytes_, bytes_))

    async def result(self) -> bytes:
        """Waits for its end. Raises Failed if it has no result."""
        await self._over
        # Kills its background processes too, which may hold its output open.
        await self.end()
        if self._overflow:
            raise Failed(f"more than {self._limit} bytes of output")
        code = self._transport.get_returncode()
        if code == 0:
            return bytes(self._output)
        words = self._complaints.decode(errors="replace").strip().splitlines()
        raise Failed(": ".join([f"exit code {code}", *words[-1:]]))

    async def end(self) -> None:
        """Kills its remaining processes, and waits until its output is closed."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._transport.get_pid(), signal.SIGKILL)
        await asyncio.wait([self._closed], timeout=DRAIN_SECONDS)
        self._transport.close()


async def _start(command: Command, folder: str) -> _Process:
    loop = asyncio.get_running_loop()
    inherited = {"PATH": os.defpath} | {
        name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ
    }
    environment = inherited | {"HOME": folder, "TMPDIR": folder} | command.env
    try:
        _, process = await loop.subprocess_exec(
            lambda: _Process(command.max_return_bytes),
            command.program,
            *command.args,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise Failed(f"cannot start {command.program!r}: {error}") from error
    assert isinstance(process, _Process)
    process.limit_memory(command.max_memory_mb)
    process.feed(command.stdin)
    return process

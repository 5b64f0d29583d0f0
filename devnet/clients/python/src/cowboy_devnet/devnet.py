"""A devnet for tests, which ends with its value and with this process, however that ends."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from cowboy_devnet.client import Client

PROGRAM = "COWBOYCTL"
"""The environment variable with the path of `cowboyctl`."""

HOLDER = (
    'printf "%s\\0" "$COWBOYCTL_HOME" "$COWBOYCTL_DEVNET" "$COWBOYCTL_RPC_URL" '
    '"$COWBOYCTL_TOKEN_FILE" && exec cat'
)
"""The command that has the devnet: prints where it is, and ends when its input does."""
HOLDER_FIELDS = 4

KEPT_VARIABLES = {"COWBOYCTL_HOME", "COWBOYCTL_LOG", "COWBOYCTL_PVM"}
"""The other variables of `cowboyctl` are options, which only the tests choose."""

START_SECONDS = 60.0
COMMAND_SECONDS = 120.0
GRACE_SECONDS = 10.0
"""What `cowboyctl` takes at most to report that its own timeout has passed."""
END_SECONDS = 45.0
"""What `devnet exec` takes at most to end."""

MAX_OUTPUT = 64 << 20
MAX_ERRORS = 64 << 10
"""The longest texts of a command, in bytes."""
MAX_SHOWN = 500
"""The longest part of a command line in an error, in characters."""


class DevnetError(Exception):
    """There is no devnet."""


@dataclass(eq=False)
class CommandError(Exception):
    """A command of `cowboyctl` that failed.

    `exit_code` is None if the command did not end in time or could not be run. `name` is the
    chain's name of the error, such as `JobExists`.
    """

    arguments: Sequence[str]
    exit_code: int | None
    message: str
    name: str | None = None
    detail: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        command = " ".join(["cowboyctl", *self.arguments])[:MAX_SHOWN]
        return "\n  ".join(filter(None, [f"{command}: {self.message}", self.detail, self.hint]))


class Devnet:
    """A running devnet of its own, made by `start`. As a context manager it stops at the end."""

    def __init__(
        self, program: str, holder: subprocess.Popen[bytes], printed: Sequence[str]
    ) -> None:
        home, self.name, self.rpc_url, token_file = printed
        self.home = Path(home)
        self._program = program
        self._holder = holder
        with open(token_file, encoding="ascii") as file:
            self.client = Client(self.rpc_url, file.read(1_000).strip())

    @classmethod
    def start(
        cls, *options: str, program: str | None = None, timeout: float = START_SECONDS
    ) -> Self:
        """Starts a devnet with options of `cowboyctl devnet exec`; returns when it is ready.

        The program is by default the one that the variable COWBOYCTL names, else `cowboyctl` in
        PATH. The timeout is in seconds. Raises `DevnetError`.
        """
        wanted = program or os.environ.get(PROGRAM) or "cowboyctl"
        found = shutil.which(wanted)
        if found is None:
            raise DevnetError(
                f"there is no program {wanted}: install cowboyctl, or name it in the environment "
                f"variable {PROGRAM} or with --devnet-program"
            )
        # Tests may change the working directory.
        path = os.path.abspath(found)
        command = [path, "--output", "json", "devnet", "exec", *options]
        command += ["--timeout", _duration(timeout), "--", "sh", "-c", HOLDER]
        with tempfile.TemporaryFile() as errors:
            holder = subprocess.Popen(
                command,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # Ctrl-C reaches only this process, which ends the devnet after its tests.
                process_group=0,
            )
            try:
                return cls(path, holder, _printed(holder, timeout + GRACE_SECONDS))
            except BaseException as error:
                _end(holder)
                if not isinstance(error, EOFError | OSError):
                    raise
                report = _report(errors)
                parts = [report["message"] or str(error), report.get("detail"), report.get("hint")]
                raise DevnetError("\n  ".join(filter(None, parts))) from error

    def stop(self) -> None:
        """Ends the devnet; returns when its processes have ended and its files are removed."""
        _end(self._holder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Devnet({self.name} at {self.rpc_url})"

    def run(self, *arguments: str | os.PathLike[str], timeout: float = COMMAND_SECONDS) -> Any:
        """Runs a command of `cowboyctl` on this devnet; returns the document that it prints.

        The timeout is in seconds. Raises `CommandError`.
        """
        texts = [os.fspath(argument) for argument in arguments]
        environment = _environment()
        environment |= {"COWBOYCTL_HOME": str(self.home), "COWBOYCTL_DEVNET": self.name}
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            try:
                code = subprocess.run(
                    [self._program, "--output", "json", *texts],
                    check=False,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    timeout=timeout,
                ).returncode
            except subprocess.TimeoutExpired:
                raise CommandError(texts, None, f"not done within {timeout:g} s") from None
            except OSError as error:
                raise CommandError(texts, None, str(error)) from None
            if code:
                report = _report(errors)
                message = report.pop("message") or f"exit code {code}"
                raise CommandError(texts, code, message, **report)
            output.seek(0)
            printed = output.read(MAX_OUTPUT + 1)
        if len(printed) > MAX_OUTPUT:
            raise CommandError(texts, code, f"the output is longer than {MAX_OUTPUT} bytes")
        try:
            return json.loads(printed)
        except ValueError:
            raise CommandError(texts, code, "the output is not one JSON document") from None

    def deploy(self, path: str | os.PathLike[str], *options: str) -> str:
        """Deploys a module as an actor; returns its address."""
        return str(self.run("actor", "deploy", path, *options)["actor"])

    def call(self, actor: str, handler: str, payload: Any = None, *options: str) -> Any:
        """Calls a handler in a transaction; returns the handler's result.

        The payload is sent as JSON of at most 128 KiB; None sends none.
        """
        given = [] if payload is None else [f"--payload-json={json.dumps(payload)}"]
        return self.run("actor", "call", actor, handler, *given, *options)["result"]

    def read(self, actor: str, handler: str, payload: Any = None, *options: str) -> Any:
        """Returns the result that `call` would have, and sends nothing."""
        return self.call(actor, handler, payload, "--dry-run", *options)

    def submit_job(self, *command: str, options: Sequence[str] = ()) -> Any:
        """Submits a command as a job; returns its id, its status and its result."""
        return self.run("job", "submit", "custom", "--wait", *options, "--", *command)

    def wait(self, height: int | str, timeout: float = 60.0) -> int:
        """Waits for a height, such as 120, or `+10` from now; returns the head's height."""
        return int(self._within(timeout, "chain", "wait", str(height))["height"])

    def assert_(self, *expressions: str, timeout: float = 30.0) -> None:
        """Waits until expressions in the language of jq hold, as `cowboyctl assert` does."""
        self._within(timeout, "assert", *expressions)

    def advance(self, blocks: int, timeout: float = 60.0) -> int:
        """Makes blocks as fast as consensus allows; returns the height of the last one."""
        return int(self._within(timeout, "chain", "advance", str(blocks))["to"])

    def snapshot(self) -> int:
        """Keeps the chain's state; returns the number to give to `revert`."""
        return int(self.run("chain", "snapshot")["snapshot"])

    def revert(self, snapshot: int) -> None:
        """Returns the chain to the state of a snapshot."""
        self.run("chain", "revert", str(snapshot))

    def forget(self, snapshot: int) -> None:
        """Frees the place of a snapshot; a chain keeps at most 16."""
        self.run("chain", "forget", str(snapshot))

    def _within(self, timeout: float, *arguments: str) -> Any:
        limit = ["--timeout", _duration(timeout)]
        return self.run(*arguments, *limit, timeout=timeout + GRACE_SECONDS)


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("COWBOYCTL_") or name in KEPT_VARIABLES
    }
    return kept | {"COWBOYCTL_CONFIG": os.devnull}


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


def _printed(holder: subprocess.Popen[bytes], timeout: float) -> list[str]:
    """What the holder prints once the devnet is ready."""
    assert holder.stdout is not None
    deadline = time.monotonic() + timeout
    ready = select.poll()
    ready.register(holder.stdout)
    printed = b""
    while printed.count(b"\0") < HOLDER_FIELDS:
        left = deadline - time.monotonic()
        if left <= 0 or not ready.poll(left * 1000):
            raise TimeoutError(f"not ready within {timeout:g} s")
        part = os.read(holder.stdout.fileno(), MAX_ERRORS)
        if not part or len(printed) > MAX_ERRORS:
            raise EOFError("cowboyctl ended or printed something else")
        printed += part
    return [os.fsdecode(field) for field in printed.split(b"\0")[:HOLDER_FIELDS]]


def _end(holder: subprocess.Popen[bytes]) -> None:
    for pipe in (holder.stdin, holder.stdout):
        if pipe:
            pipe.close()
    # A child of this process may hold the pipe.
    holder.terminate()
    try:
        holder.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        holder.kill()
        holder.wait(GRACE_SECONDS)


def _report(errors: IO[bytes]) -> dict[str, Any]:
    """The parts of the error on the last line; other text is the message."""
    errors.seek(max(errors.seek(0, os.SEEK_END) - MAX_ERRORS, 0))
    text = errors.read(MAX_ERRORS).decode(errors="replace").strip()
    try:
        error = json.loads(text.rpartition("\n")[2])["error"]
        return {part: error[part] for part in ("message", "name", "detail", "hint")}
    except (ValueError, LookupError, TypeError):
        return {"message": text}

"""A plugin for pytest that runs an author's tests of an actor on a devnet.

`cowboyctl actor test --on devnet` starts a devnet and then pytest with `-p cowboyctl_devnet`. The
plugin replaces `cowboy_sdk.testing.SimulatedChain` with `DevnetChain`, which has the same methods.
It starts and stops nothing itself. It runs `cowboyctl`, which $COWBOYCTL names, and so works on the
devnet that $COWBOYCTL_DEVNET names.

What differs from the simulated chain:

* The actor is deployed when a handler is called first. If that handler is `init`, it runs in the
  deployment, which is the only place where the chain runs it; a second `init` is refused.
* The actor is its module's source and has no attributes from its constructor. Each call gets a
  fresh instance.
* A sender needs a key. Each address that a test passes to `set_sender` means an account that
  the plugin makes, whose address is another one: `address_of` tells it. The actor's own address
  differs from the instance's `address`, too: `actor_address` tells it.
* Heights are the chain's, and blocks are made by themselves. `block_height=` of the constructor is
  ignored, and `set_block_height` cannot go back.
* A call that raises changes nothing, as on every chain; the simulated chain keeps what was written
  before.
* Timers fire when they are due, even between two calls. `advance_block` returns those that have
  fired since it was called last.
* Jobs are read back from the chain, which keeps no arguments that are equal to their defaults, and
  no `verify`. The result of a job without a schema is text; a map is delivered as JSON.
"""

import ast
import builtins
import hashlib
import inspect
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

from cowboy_sdk import codec, errors, mock_host, testing

# What a transaction may use: half of a block.
CYCLES = 10_000_000
CELLS = 400_000
# What an actor is given, which pays for its messages, timers and jobs: a job sets 1 CBY aside.
ACTOR_MONEY = "100cby"
# What a sender's account is given in each session: it pays for 10,000 actors.
SENDER_MONEY = "1000000cby"
# Seconds that one command, and the reply to one job, may take.
COMMAND_SECONDS = 120
REPLY_SECONDS = 60
# Seconds between two looks at a job.
LOOK_SECONDS = 0.05
# A payload longer than this is passed in a file, because arguments have a limit.
ARGUMENT_BYTES = 16_384
# Keys of one page of a store, the most that the control API gives.
PAGE_KEYS = 10_000
# The exit code of `cowboyctl` when the chain refused or undid something, and when a name is taken.
REJECTED = 6
CONFLICT = 8

# Arguments that the chain assumes when a job names none.
DEFAULT_MODEL = "default"
DEFAULT_METHOD = "GET"
DEFAULT_TIMEOUT = 30
DEFAULT_CYCLES = 1_000_000
DEFAULT_CELLS = 100_000

# The parts of a failure's text: the message, the SDK's slug and hints, the places.
FAILURE = re.compile(
    r"(?s)(?P<message>.*?)(?: \((?P<slug>E\d{4})\))?"
    r"(?:\n  why: (?P<why>[^\n]*))?(?:\n  fix: (?P<fix>[^\n]*))?(?:\n  at [^\n]*)*\Z"
)

# The most awaits of a continuation, each of which asks for a job.
AWAITS = 8

# Variables that change what commands print.
FORMATS = {"COWBOYCTL_JQ", "COWBOYCTL_QUIET", "COWBOYCTL_TEMPLATE"}

# Functions of the mock that tests call, and that have no counterpart on a chain.
MOCK_ONLY = (
    "get_fork_log",
    "get_send_log",
    "get_subs",
    "get_timers",
    "get_transfer_log",
    "get_upgrade_log",
    "seed_actor_owner",
    "set_block_height",
    "set_call_handler",
    "set_context",
)


class DevnetError(Exception):
    """What cannot be done on a devnet, and what to do instead."""


# The command.


def _run(*arguments):
    """Runs `cowboyctl`: its exit code, the document that it printed, and its error."""
    program = os.environ.get("COWBOYCTL", "cowboyctl")
    kept = {name: value for name, value in os.environ.items() if name not in FORMATS}
    done = subprocess.run(
        [program, "--output", "json", *arguments],
        env=kept,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
    )
    document = json.loads(done.stdout) if done.stdout.strip() else None
    error = {}
    for line in done.stderr.splitlines():
        if line.startswith('{"error"'):
            error = json.loads(line)["error"]
    return done.returncode, document, error


def _ask(*arguments):
    """The document that a command prints, which must succeed."""
    code, document, error = _run(*arguments)
    if code:
        what = error.get("message") or f"exit code {code}"
        hint = f" ({error['hint']})" if error.get("hint") else ""
        raise DevnetError(f"cowboyctl {' '.join(arguments[:3])}: {what}{hint}")
    return document


class _Argument:
    """Bytes as an argument: 0x-hex, or the name of a file that lives as long as this is open."""

    def __init__(self, data):
        self._data = data
        self._file = None

    def __enter__(self):
        if len(self._data) <= ARGUMENT_BYTES:
            return "0x" + self._data.hex()
        self._file = tempfile.NamedTemporaryFile(suffix=".bin")
        self._file.write(self._data)
        self._file.flush()
        return "@" + self._file.name

    def __exit__(self, *raised):
        if self._file is not None:
            self._file.close()


def _head():
    return _ask("chain", "head")["height"]


def _settled():
    """The height of the newest block, once the next one, which names its state, is there, too."""
    height = _head()
    _ask("chain", "wait", str(height + 1))
    return height


def _answer(job, answer):
    """Answers a job by hand."""
    # In a file, because text may look like 0x-hex, which is bytes, or like a file's name.
    with tempfile.NamedTemporaryFile(suffix=".answer") as file:
        file.write(answer)
        file.flush()
        _ask("job", "answer", job, "@" + file.name)


# Results of jobs.


def _answered(spec, result):
    """What a runner has to answer, as bytes, so that the chain delivers a result; and what it
    delivers, which differs from that result in the model's name, and if it is a map."""
    if spec["work"].get("response_schema") is None:
        if isinstance(result, (bytes, bytearray)):
            answer = bytes(result)
        else:
            plain = testing._plain(result)
            answer = (plain if isinstance(plain, str) else json.dumps(plain)).encode()
        try:
            return answer, answer.decode()
        except UnicodeDecodeError:
            return answer, answer
    model = spec["work"]["model"]
    status = result.get("status") if isinstance(result, dict) else None
    if status == "ok":
        return json.dumps(result["value"]).encode(), {**result, "model": model}
    if status == "non_success" and result["code"] == "invalid_structured_output":
        return b"", {**result, "model": model}
    raise DevnetError(
        "reply(): a job with a schema takes llm_value(...), or llm_failure(...) with "
        "LlmFailure.INVALID_STRUCTURED_OUTPUT; runners of a devnet report no other failure"
    )


# Bytes as the control API shows them: CBOR decoded, anything else in 0x-hex.


def _given(value):
    """A value of CBOR from its JSON. The API shows bytes in 0x-hex and large integers in digits."""
    if isinstance(value, str):
        if re.fullmatch(r"0x(?:[0-9a-f]{2})*", value):
            return bytes.fromhex(value[2:])
        if re.fullmatch(r"-?[1-9][0-9]{15,}", value):
            return int(value)
    if isinstance(value, list):
        return [_given(item) for item in value]
    if isinstance(value, dict):
        return {key: _given(item) for key, item in value.items()}
    return value


def _bytes(shown, null=b""):
    """The bytes that are shown so; `null` for those shown as null, which may be none or CBOR's.

    Text of CBOR that looks like 0x-hex or like a large integer cannot be told from those.
    """
    if shown is None:
        return null
    value = _given(shown)
    if isinstance(value, bytes):
        try:
            codec.decode(value)
        except Exception:
            return value
        # If these were the bytes themselves, they would be shown decoded.
    return codec.encode(value)


def _exact(document, name, null=b""):
    """A field's bytes: those of the field with `_bytes` in its name, or else as it is shown."""
    given = document.get(f"{name}_bytes")
    return _bytes(document.get(name), null) if given is None else bytes.fromhex(given[2:])


def _key(shown):
    """A key of a store."""
    value = _given(shown)
    return value if isinstance(value, bytes) else shown.encode()


# Failures.


def _exception(kind, text, module=None):
    """An exception of the class that the actor raised, if that is known here, and its message."""
    parts = FAILURE.match(text)
    message = parts["message"]
    sdk = [part for name, part in sys.modules.items() if name.startswith("cowboy_sdk.")]
    places = (module, errors, builtins, mock_host, *sdk)
    classes = (getattr(place, kind, None) for place in places)
    wanted = next(
        (c for c in classes if isinstance(c, type) and issubclass(c, Exception)), None
    )
    raised = wanted and _made(wanted, message)
    if raised is None:
        raised = RuntimeError(f"{kind}: {message}" if message != kind else kind)
    if parts["slug"]:
        raised.slug = parts["slug"]
    return raised


def _made(wanted, message):
    """An exception with this text, or None if its class makes another of it."""
    given = message
    if issubclass(wanted, KeyError):
        # Its text is its argument's representation.
        try:
            given = ast.literal_eval(message)
        except (ValueError, SyntaxError):
            pass
    try:
        raised = wanted(given) if message else wanted()
    except Exception:
        return None
    return raised if str(raised) == message else None


def _split(text):
    """The class and the rest of a failure's text."""
    kind, colon, rest = text.partition(": ")
    return (kind, rest) if colon else (text, text)


# Senders.

_accounts = {}


def _account(address):
    """The name and the address of a sender's account, which is made when it is asked for first."""
    address = bytes(address)
    if address not in _accounts:
        name = "sender-" + hashlib.sha256(address).hexdigest()[:20]
        code, _, error = _run("account", "new", name)
        if code not in (0, CONFLICT):
            raise DevnetError(f"cowboyctl account new: {error.get('message')}")
        _ask("account", "fund", name, SENDER_MONEY)
        known = _ask("account", "balance", name)
        _accounts[address] = name, bytes.fromhex(known["address"][2:])
    return _accounts[address]


# The actor.


def _source(actor):
    """The source file of an actor, and its module; refuses what the chain cannot have."""
    if inspect.ismodule(actor):
        module, path, what = actor, actor.__file__, f"module {actor.__name__}"
    else:
        kind = actor if isinstance(actor, type) else type(actor)
        what = f"class {kind.__qualname__}"
        module, path = inspect.getmodule(kind), inspect.getsourcefile(kind)
        if "<locals>" in kind.__qualname__:
            raise DevnetError(
                f"{what} is defined in a function, and a devnet deploys whole modules: "
                "move it to a module of its own"
            )
        if not isinstance(actor, type):
            _check_instance(what, kind, actor)
    path = Path(path)
    _check_module(what, path)
    return path, module


def _check_instance(what, kind, actor):
    try:
        fresh = kind()
    except TypeError as error:
        raise DevnetError(
            f"{what} needs arguments, and the chain makes instances without any ({error}): "
            "give its constructor defaults, or keep the values in its storage"
        ) from None
    own = {"_storage", "_address"}
    different = {
        name
        for name in {*vars(actor), *vars(fresh)} - own
        if name not in vars(actor)
        or name not in vars(fresh)
        or vars(actor)[name] != vars(fresh)[name]
    }
    if different:
        raise DevnetError(
            f"{what} has attributes of its own ({', '.join(sorted(different))}), and the chain "
            "makes a fresh instance for each call: keep the values in its storage"
        )


def _check_module(what, path):
    """A module of tests imports what the machine does not have."""
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    tests = {"pytest", "unittest", "cowboy_sdk.testing", "cowboy_sdk.mock_host"}
    if imported & tests:
        raise DevnetError(
            f"{what} is defined in {path.name}, which imports {sorted(imported & tests)[0]}; "
            "a devnet deploys whole modules, and its machine has none for tests: "
            "move it to a module of its own"
        )


# The chains of the test that runs.
_chains = []


def _name(handler):
    return handler.__name__ if callable(handler) else str(handler)


class DevnetChain:
    """`SimulatedChain` on the devnet: the methods of that class, and what its docs say."""

    def __init__(self, actor=None, sender=testing.DEFAULT_SENDER, block_height=1):
        # As the simulated chain does, for what the test runs itself.
        sys.modules["pvm_host"] = mock_host
        mock_host.reset()
        if actor is None:
            raise DevnetError("a devnet has no chain without an actor: give it one")
        self._actor = actor
        self._path, self._module = _source(actor)
        self._salt = secrets.token_hex(16)
        self._address = None
        self._deployed_at = None
        # The height up to which `advance_block` has told of timers.
        self._told = None
        self._own = getattr(actor, "address", None)
        self.set_sender(sender)
        _chains.append(self)

    # The context.

    def set_sender(self, sender):
        self._sender = testing._to_addr(sender)
        return self

    def set_block_height(self, height):
        head = _head()
        if int(height) < head:
            raise DevnetError(
                f"the devnet is at block {head} and cannot go back to {int(height)}: "
                "use chain.block_height and advance_block"
            )
        if int(height) > head:
            _ask("chain", "advance", str(int(height) - head))
        return self

    @property
    def block_height(self):
        return _head()

    @property
    def actor_address(self):
        """The actor's address on the devnet; None until it is deployed."""
        return self._address

    def address_of(self, sender):
        """The address of a sender's account."""
        return _account(testing._to_addr(sender))[1]

    # Calls.

    def call(self, handler, payload=b""):
        name, payload = _name(handler), bytes(testing._to_payload(payload))
        if self._own is not None and self._sender == bytes(self._own):
            raise DevnetError("the sender is the actor itself, which only the chain calls")
        if self._address is None:
            if name == "init":
                return _exact(self._deploy(payload)["actor"], "result")
            self._deploy(None)
        return _exact(self._transact(name, payload)["actor"], "result")

    def _deploy(self, init):
        """Deploys the actor, with `init` unless that is None: the transaction."""
        deploy = ["actor", "deploy", str(self._path), "--from", _account(self._sender)[0]]
        deploy += ["--salt", "0x" + self._salt, "--value", ACTOR_MONEY]
        with _Argument(init or b"") as payload:
            init = ["--no-init"] if init is None else ["--init-payload", payload]
            code, document, error = _run(*deploy, *init)
        if code == 0:
            transaction = _ask("chain", "tx", document["transaction"])
            self._address = bytes.fromhex(document["actor"][2:])
            self._deployed_at = self._told = document["deployed_at"]
            return transaction
        found = re.search(r"transaction (0x[0-9a-f]{64})", error.get("detail") or "")
        if code != REJECTED or not found:
            raise DevnetError(f"cowboyctl actor deploy: {error.get('message')}")
        self._raise(_ask("chain", "tx", found[1]))

    def _transact(self, handler, payload):
        """Calls a handler by a transaction: the transaction."""
        call = ["actor", "call", self._id, handler]
        limits = ["--cycles", str(CYCLES), "--cells", str(CELLS)]
        account = ["--from", _account(self._sender)[0]]
        with _Argument(payload) as payload:
            code, document, error = _run(*call, payload, *account, *limits)
        if document is None:
            raise DevnetError(f"cowboyctl actor call: {error.get('message') or code}")
        if not document["success"]:
            self._raise(document)
        return document

    def _raise(self, transaction):
        raise _exception(transaction["error"], transaction["message"], self._module)

    @property
    def _id(self):
        return "0x" + self._address.hex()

    def _tried(self, handler, payload, height):
        """What a call by the actor itself returned in a block, tried on the state before it.

        The chain keeps no results of such calls.
        """
        call = ["actor", "call", self._id, handler]
        place = ["--dry-run", "--from", self._id, "--at", str(height - 1)]
        with _Argument(payload) as payload:
            _, document, error = _run(*call, payload, *place)
        if document is None:
            raise DevnetError(f"cowboyctl actor call --dry-run: {error.get('message')}")
        if not document["success"]:
            self._raise(document)
        return _exact(document, "result")

    # Blocks and timers.

    def advance_block(self, n=1):
        """Makes `n` blocks: the timers of the actor that have fired since this was called last, as
        `[(handler, result)]`. Raises what a handler raised."""
        until = _ask("chain", "advance", str(int(n)))["to"]
        if self._address is None:
            return []
        fired = []
        for event in self._happened("TimerFired", self._told + 1):
            if event["height"] > until:
                break
            timer = _ask("timer", "show", event["data"]["timer_id"])
            handler, _ = testing._route_timer_payload(bytes.fromhex(timer["payload"][2:]))
            self._told = event["height"]
            if timer["error"]:
                kind, text = _split(timer["error"])
                if kind == "NoHandler":
                    continue
                raise _exception(kind, text, self._module)
            fired.append((handler, _exact(timer, "result")))
        self._told = until
        return fired

    def _happened(self, kind, start=None):
        """The events of a kind that are about the actor, from a height on."""
        start = max(start or self._deployed_at, 1)
        events = _ask("chain", "events", "--kind", kind, "--from", str(start))
        return [e for e in events if e["data"].get("actor") == self._id and e["height"] >= start]

    # The store.

    def state(self, key):
        if self._address is None:
            return None
        key = bytes(testing._to_key(key))
        if self._text(key) is None:
            return self.snapshot().get(key)
        return self._proved(key, _settled())

    def snapshot(self):
        if self._address is None:
            return {}
        entries, start = {}, None
        while True:
            page = self._page(start)
            entries |= {_key(entry["key"]): entry for entry in page["state"]}
            start = page["next"]
            if start is None or _key(start) in entries:
                break
        height = _settled()
        values = ((key, self._value(key, entry, height)) for key, entry in entries.items())
        return {key: value for key, value in values if value is not None}

    def _value(self, key, entry, height):
        """The value of an entry, whose proof is exact. Keys that are not text have none."""
        if "value_bytes" in entry or self._text(key) is None:
            return _exact(entry, "value", b"\xf6")
        return self._proved(key, height)

    def _page(self, start):
        """A page of the store, whose values are decoded and so not exact."""
        url = _ask("devnet", "env")["rpc_url"]
        query = {"limit": PAGE_KEYS} | ({} if start is None else {"from": start})
        url = f"{url}/v1/actors/{self._id}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=COMMAND_SECONDS) as answer:
            return json.load(answer)

    @staticmethod
    def _text(key):
        """A key as commands take it; None if they cannot."""
        try:
            text = key.decode()
        except UnicodeDecodeError:
            return None
        return text if text.isprintable() and not text.startswith("0x") else None

    def _proved(self, key, height):
        """The exact value of a key that is text after a block, from a proof; None if absent."""
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "proof")
            subject = f"{self._id}/{self._text(key)}"
            prove = ["chain", "prove", "stored", subject, "--at", str(height), "--out", file]
            if not _ask(*prove)["present"]:
                return None
            return codec.decode(bytes.fromhex(_ask("chain", "verify", file)["value_bytes"][2:]))

    def assert_state(self, key, expected):
        actual = self.state(key)
        if not isinstance(expected, (bytes, bytearray, type(None))):
            expected = testing._to_key(expected)
        assert actual == expected, f"state[{key!r}] = {actual!r}, expected {expected!r}"
        return self

    def events(self):
        if self._address is None:
            return []
        events = self._happened("PythonEmitted")
        # CBOR's null is the only value that is shown so: the SDK sends no event without data.
        return [(e["data"]["name"], _exact(e["data"], "data", b"\xf6")) for e in events]

    # Jobs.

    def jobs(self):
        if self._address is None:
            return []
        return [_request(_ask("job", "show", job)["spec"]) for job in self._jobs()]

    def _jobs(self):
        """The ids of the actor's jobs, oldest first."""
        start = str(self._deployed_at)
        events = _ask("chain", "events", "--kind", "JobSubmitted", "--from", start)
        return [e["data"]["job_id"] for e in events if e["data"]["submitter"] == self._id]

    def _open_jobs(self):
        if self._address is None:
            return []
        known = ((job, _ask("job", "show", job)["status"]) for job in self._jobs())
        return [job for job, status in known if status not in ("Verified", "Failed")]

    def reply(self, result):
        jobs = self._jobs() if self._address is not None else []
        if not jobs:
            raise AssertionError("reply(): the actor has sent no runner job")
        answer, delivered = _answered(_ask("job", "show", jobs[-1])["spec"], result)
        _answer(jobs[-1], answer)
        return self._resumed(jobs[-1], delivered)

    def _resumed(self, job, delivered):
        """Waits until a job's continuation has resumed: what that returned."""
        limit = time.monotonic() + REPLY_SECONDS
        while True:
            known = _ask("job", "show", job)
            made = [e for e in known["events"] if e["event"] == "CallbackMade"]
            if made:
                break
            if known["status"] == "Failed" or time.monotonic() > limit:
                what = known["error"] or f"no runner answered it in {REPLY_SECONDS} s"
                raise DevnetError(f"job {job}: {what}")
            time.sleep(LOOK_SECONDS)
        made, callback = made[-1], known["spec"]["callback"]
        if made["data"]["error"]:
            raise _exception(*_split(made["data"]["error"]), self._module)
        payload = codec.encode({
            "cid": _cid(callback).hex(),
            "result": delivered,
            "reply_handler": callback["handler"],
            "correlation_id": None,
        })
        return self._tried(callback["handler"], payload, made["height"])

    # Determinism.

    def check_determinism(self, scenario):
        snapshots = []
        for _ in range(2):
            chain = type(self)(self._actor)
            scenario(chain)
            snapshots.append(chain.snapshot())
        return snapshots[0] == snapshots[1]


def _request(spec):
    """The request that a job was made from, as the simulated chain decodes it."""
    work, args, kwargs = spec["work"], [], {}
    if spec["kind"] == "llm":
        for message in work["messages"]:
            if message["role"] == "system":
                kwargs["system_prompt"] = message["content"]
            else:
                args = [message["content"]]
        if work["model"] != DEFAULT_MODEL:
            kwargs["model"] = work["model"]
        if work["max_tokens"] is not None:
            kwargs["max_tokens"] = work["max_tokens"]
        if work["seed"] is not None:
            kwargs["seed"] = work["seed"]
        if work["temperature_milli"] is not None:
            temperature = work["temperature_milli"] / 1000
            kwargs["temperature"] = int(temperature) if temperature.is_integer() else temperature
        if work["response_schema"] is not None:
            kwargs["response_schema"] = work["response_schema"]
    elif spec["kind"] == "http":
        args = [work["url"]]
        if work["method"] != DEFAULT_METHOD:
            kwargs["method"] = work["method"]
        if work["headers"]:
            kwargs["headers"] = dict(_pairs(work["headers"]))
        if work["body"] is not None:
            body = bytes.fromhex(work["body"][2:])
            try:
                kwargs["body"] = body.decode()
            except UnicodeDecodeError:
                kwargs["body"] = body
        if work["pointer"] is not None:
            kwargs["pointer"] = work["pointer"]
    elif spec["kind"] == "mcp":
        args = [work["server"], work["tool"]]
        arguments = work["arguments"]
        kwargs = json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
    if spec["timeout_blocks"] != DEFAULT_TIMEOUT:
        kwargs["timeout_blocks"] = spec["timeout_blocks"]
    resume = spec["callback"]["resume"]
    if resume["cycles"] != DEFAULT_CYCLES:
        kwargs["resume_cycles"] = resume["cycles"]
    if resume["cells"] != DEFAULT_CELLS:
        kwargs["resume_cells"] = resume["cells"]
    return {
        "kind": "runner_job",
        "job_type": spec["kind"],
        "payload": {"args": args, "kwargs": kwargs},
        "cid": _cid(spec["callback"]),
        "reply_handler": spec["callback"]["handler"],
    }


def _cid(callback):
    """The id of the continuation that a job resumes."""
    return bytes.fromhex(callback["resume"]["cid"][2:])


def _pairs(headers):
    for header in headers:
        yield (header["name"], header["value"]) if isinstance(header, dict) else tuple(header)


# The plugin.


def pytest_runtest_teardown(item):
    """Answers what a test has left open, because a runner that answers nothing loses its
    reputation, and soon gets no jobs."""
    while _chains:
        chain = _chains.pop()
        for _ in range(AWAITS):
            open_jobs = chain._open_jobs()
            for job in open_jobs:
                _run("job", "answer", job, "@" + os.devnull)
            if not open_jobs:
                break


def _absent(name):
    def skip(*arguments, **named):
        import pytest

        pytest.skip(f"mock_host.{name} has no counterpart on a devnet")

    skip.__name__ = skip.__qualname__ = name
    return skip


def pytest_load_initial_conftests():
    """Before any file of the author is imported, so that all imports find the devnet's chain."""
    testing.SimulatedChain = DevnetChain
    sys.modules.setdefault("pvm_host", mock_host)
    for name in MOCK_ONLY:
        setattr(mock_host, name, _absent(name))


def pytest_report_header(config):
    return f"cowboyctl: SimulatedChain is devnet {os.environ.get('COWBOYCTL_DEVNET', '(current)')}"

"""A scenario's actors on a devnet, and the same scenario on the SDK's simulated chain.

The devnet comes first. Every block says what ran in it: transactions, timers, messages, replies.
The simulated chain then runs the same handlers in the same order, each in the context that it had
on the devnet: hash, sender, height, time. After that, both must have the same stores, events and
jobs, and each operation of the scenario must have had the same outcome.
"""

import copy
import sys
import time
from datetime import datetime

from cowboy_sdk import codec, mock_host, pvm_random, testing
from cowboy_sdk._keccak import keccak256
from cowboy_sdk.runner import RUNNER_ADDRESS

import cowboyctl_devnet as devnet

# The handler of a message.
MESSAGE = "handle_message"
# Keys of a store with this prefix hold random numbers, which only the chain knows.
RANDOM = b"random:"
# The fields of a request that a job is made from.
REQUEST = ("kind", "job_type", "payload", "cid", "reply_handler")
# Blocks that a job may take until it has failed for good.
FAILURE_BLOCKS = 100
# Host functions that a devnet refuses, and what it lacks.
ABSENT = {
    "fork_actor": "forks of actors",
    "upgrade_self": "upgrades of actors",
    "subscribe_event": "event subscriptions",
    "submit_job": "jobs by raw payload; use cowboy_sdk.runner",
    "intent_deposit": "intents",
    "offchain_image_initialize": "off-chain images",
}
# What a reentrant call is told.
ENTERED = "an actor cannot be entered twice"


def outcome(operation):
    """What an operation returned, or the class and the text of what it raised."""
    try:
        return "returned", operation()
    except devnet.DevnetError:
        raise
    except Exception as error:
        return "raised", (type(error).__name__, str(error))


def milliseconds(timestamp):
    moment = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    return round(moment.timestamp() * 1000)


class Run:
    """One run of a handler on the devnet: where it was, and what started it."""

    def __init__(self, kind, place, actor, cause, **more):
        self.kind, self.place, self.actor, self.cause = kind, place, actor, cause
        self.more = more
        self.done = False


# The devnet.


class Chain(devnet.DevnetChain):
    """A chain of a scenario on the devnet, which notes what its operations did."""

    def __init__(self, actor, world):
        self.world = world
        super().__init__(actor())

    def another(self, actor):
        """A chain of another actor, in the same world."""
        return self.world.chain(actor)

    def call(self, handler, payload=b""):
        return self._noted(lambda: super(Chain, self).call(handler, payload), "call")

    def reply(self, result):
        return self._noted(lambda: super(Chain, self).reply(result), "reply")

    def advance_block(self, n=1):
        return self._noted(lambda: super(Chain, self).advance_block(n), "advance")

    def fail(self):
        """Lets the actor's last job fail for good, because no runner answers it."""

        def wait():
            job = self._jobs()[-1]
            limit = time.monotonic() + devnet.REPLY_SECONDS
            while not devnet._ask("job", "show", job)["status"] == "Failed":
                if time.monotonic() > limit:
                    raise devnet.DevnetError(f"job {job} does not fail")
                devnet._ask("chain", "advance", str(FAILURE_BLOCKS))
            known = devnet._ask("job", "show", job)
            made = [e["data"] for e in known["events"] if e["event"] == "CallbackMade"][-1]
            if made["error"]:
                raise devnet._exception(*devnet._split(made["error"]), self._module)

        return self._noted(wait, "fail")

    def _noted(self, operation, kind):
        self.last = None
        told = outcome(operation)
        if kind == "call":
            sender = devnet._account(self._sender)[1]
            self.world.ran.append((self.last, self, sender))
        cause = self._told if kind == "advance" else self.last and self.last["hash"]
        self.world.note(kind, told, cause)
        return told

    @property
    def block_height(self):
        height = devnet._head()
        self.world.note("height", height, None)
        return height

    def _deploy(self, init):
        self.last = super()._deploy(init)
        return self.last

    def _transact(self, handler, payload):
        self.last = super()._transact(handler, payload)
        return self.last

    def _raise(self, transaction):
        # A trial has no hash.
        if "hash" in transaction:
            self.last = transaction
        super()._raise(transaction)


class Devnet:
    """The world on a devnet."""

    def __init__(self):
        self.chains, self.notes, self.ran = [], [], []
        self.start = devnet._head()
        self.chain_id = int(devnet._ask("devnet", "status")["chain_id"], 16)

    def chain(self, actor):
        self.chains.append(Chain(actor, self))
        return self.chains[-1]

    def note(self, kind, told, cause):
        self.notes.append((kind, told, cause))

    def end(self):
        """Keeps what the actors have at the end."""
        self.last = devnet._head()
        self.found = [(chain.snapshot(), chain.events(), chain.jobs()) for chain in self.chains]

    def runs(self):
        """Every run of a handler until the end, in order."""
        chains = {chain._id: chain for chain in self.chains if chain.actor_address}
        found = []
        for transaction, chain, sender in self.ran:
            if transaction is None:
                continue
            events = transaction["events"]
            index = events[0]["index"] if events else 0
            place = (transaction["height"], index)
            cause = bytes.fromhex(transaction["hash"][2:])
            found.append(Run("call", place, chain, cause, sender=sender))
        kinds = ("TimerFired", "MessageDelivered", "CallbackMade")
        for kind in kinds:
            start = str(self.start)
            for event in devnet._ask("chain", "events", "--kind", kind, "--from", start):
                chain = chains.get(event["data"]["actor"])
                if chain is None:
                    continue
                place = (event["height"], event["index"])
                found.append(self._caused(kind, place, chain, event["data"]))
        found = (run for run in found if run.place[0] <= self.last)
        return sorted(found, key=lambda run: run.place)

    def _caused(self, kind, place, chain, data):
        if kind == "TimerFired":
            timer = devnet._ask("timer", "show", data["timer_id"])
            cause = bytes.fromhex(data["timer_id"][2:])
            payload = bytes.fromhex(timer["payload"][2:])
            return Run("timer", place, chain, cause, payload=payload, error=timer["error"])
        if kind == "MessageDelivered":
            sender = bytes.fromhex(data["sender"][2:])
            return Run("message", place, chain, None, sender=sender, error=data["error"])
        job = devnet._ask("job", "show", data["job_id"])
        cause = bytes.fromhex(data["job_id"][2:])
        return Run("reply", place, chain, cause, job=job, error=data["error"])

    def context(self, run):
        height = run.place[0]
        block = devnet._ask("chain", "block", str(height))
        chain_id = self.chain_id
        return {
            "block_height": height,
            "timestamp_ms": milliseconds(block["timestamp"]),
            "chain_id": chain_id,
            "chain_instance_id": keccak256(b"cowboy-chain/v1" + chain_id.to_bytes(8, "big")),
        }


# The simulated chain.


class State:
    """What the mock has of one actor."""

    def __init__(self):
        self.storage, self.sent, self.timers, self.events = {}, [], {}, []

    def copy(self):
        other = State()
        other.storage, other.sent = dict(self.storage), list(self.sent)
        other.timers, other.events = dict(self.timers), list(self.events)
        return other


class Host:
    """The module `pvm_host` of the simulated world: the SDK's mock, and what that lacks."""

    HostError = mock_host.HostError

    def __init__(self, world):
        self.world = world

    def __getattr__(self, name):
        if name not in ABSENT:
            return getattr(mock_host, name)

        def refuse(*arguments):
            what = f"{name}: this devnet has no {ABSENT[name]}"
            raise mock_host.HostError(what, 2, "invalid_input")

        return refuse

    def charge_gas(self, amount):
        pass

    def self_address(self):
        return mock_host.context()["actor_addr"]

    def runtime_config(self):
        return {"continuation_mode": "fsm"}

    def actor_owner(self):
        return self.world.current.owner

    def emit_event(self, name, data, schema=None):
        self.world.emitted += 1
        self.world.current.state.events.append((name, data))
        return {"emit_id": self.world.emitted, "sync_outcomes": [], "deferred_subs": []}

    def send_message(self, target, payload):
        mock_host.send_message(target, payload)
        if bytes(target) != RUNNER_ADDRESS:
            letter = (self.world.current.address, bytes(target), bytes(payload))
            self.world.letters.append((self.world.cause, letter))

    def randomness(self, domain):
        # The seed is the chain's secret, so only what does not depend on it is compared.
        return keccak256(self.world.cause + bytes(domain))

    def schedule_timer(self, height, payload):
        return self.schedule_timer_ex(height, payload)

    def schedule_timer_ex(self, height, payload, *terms):
        if height <= mock_host.current_block():
            now = mock_host.current_block()
            what = f"a timer at block {height} would be in the past: the block is {now}"
            raise mock_host.HostError(what, 2, "invalid_input")
        own = mock_host.schedule_timer_ex(height, payload, *terms)
        identity = self.world.timer_id(height)
        mock_host._timers[identity] = mock_host._timers.pop(own)
        return identity

    def call_actor(self, target, method, payload, cycles_limit, access_limit=0):
        return self.world.nested(bytes(target), method, bytes(payload))

    def verify_signature(self, *arguments):
        return mock_host.verify_signature(*arguments)

    # Tokens.

    def token_create(self, name, symbol, decimals, supply, most, hook, uri):
        token = self.world.token_id()
        owner = self.world.current.address
        self.world.tokens[token] = {"most": most, "held": {owner: supply}, "allowed": {}}
        return token

    def token_transfer(self, token, to, amount):
        self._move(token, self.world.current.address, to, amount)

    def token_transfer_from(self, token, owner, to, amount):
        allowed = self.world.tokens[token]["allowed"]
        place = (owner, self.world.current.address)
        if allowed.get(place, 0) < amount:
            what = f"{allowed.get(place, 0)} of {amount} are allowed"
            raise mock_host.HostError(what, 8, "quota")
        self._move(token, owner, to, amount)
        allowed[place] -= amount

    def _move(self, token, owner, to, amount):
        held = self.world.tokens[token]["held"]
        if held.get(owner, 0) < amount:
            what = f"{held.get(owner, 0)} of {amount} are there"
            raise mock_host.HostError(what, 8, "quota")
        held[owner] -= amount
        held[to] = held.get(to, 0) + amount

    def token_mint(self, token, to, amount):
        most = self.world.tokens[token]["most"]
        if most is not None and self.token_total_supply(token) + amount > most:
            what = "the supply would exceed the token's maximum, or 2^128 - 1"
            raise mock_host.HostError(what, 2, "invalid_input")
        held = self.world.tokens[token]["held"]
        held[to] = held.get(to, 0) + amount

    def token_burn(self, token, amount):
        self.world.tokens[token]["held"][self.world.current.address] -= amount

    def token_approve(self, token, spender, amount):
        self.world.tokens[token]["allowed"][self.world.current.address, spender] = amount

    def token_allowance(self, token, owner, spender):
        return self.world.tokens[token]["allowed"].get((owner, spender), 0)

    def token_balance_of(self, token, owner):
        return self.world.tokens[token]["held"].get(bytes(owner), 0)

    def token_total_supply(self, token):
        return sum(self.world.tokens[token]["held"].values())


class Simulated(testing.SimulatedChain):
    """A chain of a scenario on the mock. Its operations do again what the devnet did."""

    def __init__(self, actor, real, world):
        self._base, self._host = mock_host, world.host
        self.world, self.real, self.kind = world, real, actor
        self.address = real.actor_address
        self.owner, self.state = None, State()
        self._told = []

    def another(self, actor):
        return self.world.chain(actor)

    @property
    def actor_address(self):
        return self.address

    def address_of(self, sender):
        return devnet._account(testing._to_addr(sender))[1]

    def set_sender(self, sender):
        return self

    @property
    def block_height(self):
        return self.world.expect("height")[1]

    def call(self, handler, payload=b""):
        cause = self.world.expect("call")[2]
        run = self.world.reach(cause)
        if run is None:
            # The devnet refused it before it was a transaction.
            return self.world.keep(("raised", None))
        name = devnet._name(handler)
        told = outcome(lambda: self.world.execute(self, name, payload, run, run.more["sender"]))
        return self.world.keep((told[0], told[1] or b"") if told[0] == "returned" else told)

    def reply(self, result):
        self.world.expect("reply")
        run = self.world.next_reply(self)
        if run is None:
            text = "reply(): the actor has sent no runner job"
            return self.world.keep(("raised", ("AssertionError", text)))
        _, delivered = devnet._answered(run.more["job"]["spec"], result)
        resumed = outcome(lambda: self.world.resume(self, run, result=delivered) or b"")
        return self.world.keep(resumed)

    def fail(self):
        self.world.expect("fail")
        run = self.world.next_reply(self)
        kind, told = outcome(lambda: self.world.resume(self, run))
        return self.world.keep((kind, None if kind == "returned" else told))

    def advance_block(self, n=1):
        until = self.world.expect("advance")[2]
        self.world.replay(until=(until + 1, -1))
        told, self._told = self._told, []
        raised = next((told for told in told if told[0] == "raised"), None)
        fired = [value for kind, value in told if kind == "returned"]
        return self.world.keep(raised or ("returned", fired))

    def jobs(self):
        """Without what a group of tasks adds, which the chain does not keep."""
        with self.world.at(self):
            jobs = testing.SimulatedChain.jobs(self)
        return [{key: job[key] for key in REQUEST} for job in jobs]

    def events(self):
        return self.state.events

    def snapshot(self):
        return self.state.storage


class _At:
    """The mock has the state of one actor while this is open."""

    def __init__(self, world, chain):
        self.world, self.chain = world, chain

    def __enter__(self):
        self.world._put()
        self.before, self.world.current = self.world.current, self.chain
        self.world._take()

    def __exit__(self, *raised):
        self.world._put()
        self.world.current = self.before
        self.world._take()


class Mock:
    """The world on the simulated chain, after that on a devnet."""

    def __init__(self, real):
        self.real = real
        self.chains, self.made, self.kept = [], 0, []
        self.notes, self.current = iter(real.notes), None
        self.runs = real.runs()
        self.letters, self.tokens, self.running = [], {}, []
        self.cause, self.emitted = b"", 0
        self.host = Host(self)
        mock_host.reset()
        sys.modules["pvm_host"] = self.host
        self._ids = {}
        for chain in real.chains:
            if chain.actor_address:
                ids = [e["data"] for e in chain._happened("TimerScheduled")]
                self._ids[chain.actor_address] = ids

    def chain(self, actor):
        real = self.real.chains[self.made]
        self.made += 1
        chain = Simulated(actor, real, self)
        first = next((run for run in self.runs if run.actor is real), None)
        if first is not None:
            chain.owner = first.more["sender"]
        self.chains.append(chain)
        return chain

    def at(self, chain):
        return _At(self, chain)

    def _put(self):
        if self.current is not None:
            state = self.current.state
            state.storage, state.sent = mock_host._storage, mock_host._send_log
            state.timers = mock_host._timers

    def _take(self):
        if self.current is not None:
            state = self.current.state
            mock_host._storage, mock_host._send_log = state.storage, state.sent
            mock_host._timers = state.timers

    def expect(self, kind):
        note = next(self.notes)
        assert note[0] == kind, f"the devnet did {note[0]}, not {kind}"
        return note

    def keep(self, told):
        self.kept.append(told)
        return told

    def timer_id(self, height):
        """The id that the devnet gave to the timer that is scheduled now."""
        ids = self._ids[self.current.address]
        known = next((data for data in ids if data["height"] == height), None)
        if known is None:
            # The devnet has undone it.
            return bytes(32)
        ids.remove(known)
        return bytes.fromhex(known["timer_id"][2:])

    def token_id(self):
        """The id that the devnet gave to the token that is created now."""
        stored = self.current.real.state("token")
        return bytes(32) if stored is None else codec.decode(stored)

    def of(self, real):
        return next(chain for chain in self.chains if chain.real is real)

    # Runs.

    def reach(self, cause):
        """Does what the devnet did before a transaction: the transaction's run."""
        if cause is None:
            return None
        cause = bytes.fromhex(cause[2:])
        run = next(run for run in self.runs if run.kind == "call" and run.cause == cause)
        self.replay(until=run.place)
        run.done = True
        return run

    def replay(self, until):
        """Does what the devnet did by itself before a place."""
        for run in self.runs:
            if run.place >= until:
                break
            if run.done or run.kind in ("call", "reply"):
                continue
            run.done = True
            chain = self.of(run.actor)
            if run.kind == "timer":
                self.fire(chain, run)
            else:
                self.deliver(chain, run)

    def fire(self, chain, run):
        handler, payload = testing._route_timer_payload(run.more["payload"])
        with self.at(chain):
            mock_host.cancel_timer(run.cause)
        told = outcome(lambda: self.execute(chain, handler, payload, run, chain.address) or b"")
        if told[0] == "returned":
            chain._told.append(("returned", (handler, told[1])))
        elif "NoHandler" not in told[1][1]:
            chain._told.append(told)

    def deliver(self, chain, run):
        """Delivers the oldest message from one actor to another."""
        sender = run.more["sender"]
        for letter in self.letters:
            cause, (source, target, payload) = letter
            if (source, target) == (sender, chain.address):
                break
        else:
            raise AssertionError("the devnet delivered a message that no actor sent")
        self.letters.remove(letter)
        # Each message has a hash of its own, which only the chain knows.
        run.cause = keccak256(cause + payload)
        told = outcome(lambda: self.execute(chain, MESSAGE, payload, run, sender))
        error = run.more["error"]
        expected = None
        if error:
            raised = devnet._exception(*devnet._split(error))
            expected = (type(raised).__name__, str(raised))
        assert (told[1] if told[0] == "raised" else None) == expected, (told, expected)

    def end(self):
        """Does what the devnet did by itself after the scenario's last operation."""
        self.replay(until=(self.real.last + 1, -1))
        self._put()

    def next_reply(self, chain):
        replies = (r for r in self.runs if r.kind == "reply" and r.actor is chain.real)
        run = next((run for run in replies if not run.done), None)
        if run is None:
            return None
        self.replay(until=run.place)
        run.done = True
        return run

    def resume(self, chain, run, **result):
        job = run.more["job"]
        callback = job["spec"]["callback"]
        reply = {
            "cid": devnet._cid(callback).hex(),
            "reply_handler": callback["handler"],
            "correlation_id": None,
        }
        if not result:
            failed = next(e for e in job["events"] if e["event"] == "JobFailed")
            none = failed["data"]["reason"] == "no_candidates"
            reason = "no_replacement_available" if none else "retries_exhausted"
            result["failure"] = {
                "kind": "failure",
                "v": 1,
                "job_id": job["job_id"],
                "reason": reason,
                "attempts": job["attempts"],
            }
        payload = codec.encode(reply | result)
        return self.execute(chain, callback["handler"], payload, run, chain.address)

    def execute(self, chain, handler, payload, run, sender):
        """Runs a handler in the context that it had on the devnet, in a fresh instance. What it
        raises is undone."""
        self.cause, self.emitted = run.cause, 0
        mock_host.set_block_height(run.place[0])
        mock_host.set_context(**self.real.context(run))
        return self._undone_if_raised(
            lambda: self._execute(chain, handler, payload, sender, run.cause)
        )

    def _execute(self, chain, handler, payload, sender, cause):
        before = mock_host.context()
        self.running.append(chain.address)
        try:
            with self.at(chain):
                context = {"sender": sender, "actor_addr": chain.address, "tx_hash": cause}
                mock_host.set_context(**context)
                pvm_random.seed()
                chain._actor = chain.kind()
                function = getattr(chain._actor, handler, None)
                if function is None or not self._opened(handler, function):
                    raise RuntimeError(f"NoHandler: the actor has no handler {handler}")
                return testing.SimulatedChain.call(chain, handler, payload)
        finally:
            self.running.pop()
            mock_host.set_context(sender=before["sender"], actor_addr=before["actor_addr"])

    @staticmethod
    def _opened(name, function):
        """Whether the machine calls a method by its name: not if it is private."""
        resumes = getattr(function, "_is_continuation_resume", False)
        return not name.startswith("_") or hasattr(function, "_call_perm") or resumes

    def _undone_if_raised(self, operation):
        self._put()
        states = [(chain, chain.state.copy()) for chain in self.chains]
        letters, tokens = list(self.letters), copy.deepcopy(self.tokens)
        try:
            return operation()
        except Exception:
            for chain, state in states:
                chain.state = state
            self.letters, self.tokens = letters, tokens
            self._take()
            raise

    def nested(self, target, method, payload):
        """A call of another actor in the same transaction."""
        chain = next((chain for chain in self.chains if chain.address == target), None)
        if target in self.running:
            raise mock_host.HostError(ENTERED, 5, "forbidden")
        if chain is None:
            raise mock_host.HostError(f"no actor 0x{target.hex()}", 3, "not_found")
        sender = self.current.address
        try:
            return self._undone_if_raised(
                lambda: self._execute(chain, method, payload, sender, self.cause) or b""
            )
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise mock_host.HostError(what, 6, "internal") from None


# Both.


def is_refusal(told):
    """Whether a host function was refused: the mock words its refusals in another way."""
    return told[0] == "raised" and told[1] is not None and told[1][0] == "HostError"


def first_difference(real, mock):
    """The first difference between the two worlds, or None."""
    kept = [note for note in real.notes if note[0] != "height"]
    for number, (note, told) in enumerate(zip(kept, mock.kept, strict=True), 1):
        if note[1] != told and not (is_refusal(note[1]) and is_refusal(told)):
            return f"operation {number}, {note[0]}: devnet {note[1]!r}, mock {told!r}"
    mock.end()
    for number, (found, other) in enumerate(zip(real.found, mock.chains, strict=True), 1):
        name = f"actor {number}"
        store, other_store = without_random(found[0]), without_random(other.snapshot())
        for key in sorted(store.keys() | other_store.keys()):
            one, two = store.get(key), other_store.get(key)
            if one != two:
                return f"{name}, key {key!r}: devnet {one!r}, mock {two!r}"
        for what, one, two in (
            ("events", found[1], other.events()),
            ("jobs", found[2], other.jobs()),
        ):
            if one != two:
                return f"{name}, {what}: devnet {one!r}, mock {two!r}"
    pending = [run.kind for run in mock.runs if not run.done]
    return f"the mock did not do: {pending}" if pending else None


def without_random(store):
    return {key: value for key, value in store.items() if not key.startswith(RANDOM)}

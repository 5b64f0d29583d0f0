# The builtins of actors' modules, for editors: Pyright reads a file of this name in a project's
# root. docs/actors.md has the costs.

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

# JSON values.
type Json = None | bool | int | str | list[Json] | tuple[Json, ...] | dict[str, Json]

class Context:
    """The context of a call."""

    height: int
    """Height of the block."""
    timestamp_ms: int
    """Timestamp of the block, Unix ms."""
    sender: str
    """Address of the caller: an account, or an actor by message."""
    value: int
    """Wei sent with the call; already part of the actor's balance."""
    self: str
    """The actor's address."""
    cycles_left: int
    """Cycles left at this moment."""

class GBAContext:
    """The context of a gas bidding agent's call (CIP-1 §7.2)."""

    trigger_block_height: int
    current_block_height: int
    basefee_cycle: int
    basefee_cell: int
    basefee_lane_timer: int
    last_block_cycle_usage: int
    previous_block_p50_priority_tip_per_cycle: int
    owner_actor_balance: int

class TxFeeParams:
    """The answer of a gas bidding agent (CIP-1 §7.1). Amounts in wei."""

    max_fee_per_cycle: int
    max_priority_fee_per_cycle: int
    max_fee_per_cell: int
    max_priority_fee_per_cell: int
    def __init__(
        self,
        *,
        max_fee_per_cycle: int,
        max_priority_fee_per_cycle: int,
        max_fee_per_cell: int,
        max_priority_fee_per_cell: int,
    ) -> None: ...

class _Host:
    """The chain: functions to read it and to request actions."""

    def get_state(self, key: str, default: Any = None) -> Any:
        """The value stored under a key of at most 256 bytes. 10 cycles."""
    def set_state(self, key: str, value: Any) -> None:
        """Stores a value of at most 1 MiB as JSON. 50 cycles and a cell per byte."""
    def delete_state(self, key: str) -> None:
        """Removes a key. 50 cycles."""
    def get_balance(self, account: str | None = None) -> int:
        """Wei of an account, of the actor if none is named. 10 cycles."""
    def transfer(self, to: str, amount: int) -> None:
        """Pays wei from the actor's balance. 80 cycles."""
    def send_message(self, to: str, handler: str, payload: Any = "", value: int = 0) -> None:
        """Calls another actor's handler after this call, with wei. 80 cycles."""
    def emit(self, name: str, data: Any = None) -> None:
        """Emits an event. 20 cycles and a cell per byte."""
    def log(self, *args: Any, sep: str = " ") -> None:
        """Writes a log line, which is kept even if the call fails. 20 cycles, a cell per byte."""
    def get_block_height(self) -> int:
        """Height of the block."""
    def get_timestamp_ms(self) -> int:
        """Timestamp of the block, Unix ms."""
    def randomness(self, domain: str = "") -> str:
        """32 bytes as hex, different for each call and domain. 60 cycles per 32 bytes."""
    def keccak256(self, data: str) -> str:
        """Hash of the bytes that 0x-hex stands for, else of UTF-8. 60 cycles per 32 bytes."""
    def json_encode(self, value: Any) -> str:
        """A value as JSON. A cycle per 4 bytes."""
    def json_decode(self, text: str) -> Any:
        """What JSON stands for. A cycle per 4 bytes."""
    def get_mru(self, kind: str, submitter: str | None = None) -> str | None:
        """The runner that last served a submitter with this kind of job. 10 cycles."""
    def schedule_timer(
        self,
        height: int,
        payload: Any,
        fee_payer: str | None = None,
        gas_limit: int | None = None,
        expires_at: int | None = None,
        max_fee_per_cycle: int | None = None,
        max_priority_fee_per_cycle: int | None = None,
        handler: str | None = None,
        gba: str | None = None,
        priority_tier_hint: str | None = None,
        bid: Any = None,
        cell_limit: int | None = None,
    ) -> str:
        """Schedules a call of a handler; returns the timer's id. 200 cycles, a cell per byte."""
    def schedule_timer_ex(
        self,
        height: int,
        payload: Any,
        fee_payer: str | None = None,
        gas_limit: int | None = None,
        expires_at: int | None = None,
        max_fee_per_cycle: int | None = None,
        max_priority_fee_per_cycle: int | None = None,
        handler: str | None = None,
        gba: str | None = None,
        priority_tier_hint: str | None = None,
        bid: Any = None,
        cell_limit: int | None = None,
    ) -> str:
        """The same function under a longer name. 200 cycles, a cell per byte."""
    def set_timeout(
        self,
        blocks: int,
        gba: str,
        payload: Any = None,
        handler: str | None = None,
        gas_limit: int | None = None,
        cell_limit: int | None = None,
        expires_at: int | None = None,
    ) -> str:
        """Schedules a timer with an agent; returns its id. 200 cycles, a cell per byte."""
    def cancel_timer(self, timer_id: str) -> None:
        """Cancels a timer of the actor. 200 cycles."""
    def extend_timer(self, timer_id: str, expires_at: int) -> None:
        """Moves a timer's expiry. 200 cycles."""
    def submit_job(self, spec: Any, callback: str | None = None) -> str:
        """Submits a job, paid by the actor; returns its id. 500 cycles and a cell per byte."""

class _Mock:
    """The chain of a test; available only in `cowboyctl actor test`."""

    def account(self, name: str) -> str:
        """The address of an account with this name."""
    def fund(self, account: str, amount: int) -> None:
        """Gives an account wei."""
    def deploy(self, name: str, source: str) -> str:
        """Deploys an actor with this source under an account's name; returns its address."""
    def policy(self, name: str) -> None:
        """Sets the policy: eip1559, fifo or gba-auction. Call it before the first timer."""
    def charge(self) -> None:
        """From here on, cycles and cells have the prices of a new devnet."""
    def call(
        self,
        handler: str | Callable[..., Any],
        payload: Any = "",
        sender: str | None = None,
        value: int = 0,
        timer_allowance: int = 0,
        cycles: int | None = None,
        cells: int | None = None,
    ) -> Any:
        """Calls a handler like a transaction; returns its result, parsed from JSON."""
    def fails(
        self,
        handler: str | Callable[..., Any],
        payload: Any = "",
        sender: str | None = None,
        value: int = 0,
        timer_allowance: int = 0,
        cycles: int | None = None,
        cells: int | None = None,
    ) -> str:
        """Returns the error of a failing call, whose effects are undone."""
    def advance(self, blocks: int = 1, may_fail: bool = False) -> int:
        """Advances by blocks, in which timers fire; returns the new height."""
    def assume(self, condition: Any) -> None:
        """Discards the input of a test with parameters unless the condition is true."""
    def bound(self, x: int, low: int, high: int) -> int:
        """Maps any int into a range, both ends included; an int in it stays the same."""
    def timers(self) -> list[dict[str, Any]]:
        """Waiting timers: timer_id, height, payload, handler, gba, bid and more."""
    def fires(self) -> list[dict[str, Any]]:
        """Timers that fired or were removed: outcome, error, charged, bid and more."""
    def events(self) -> list[dict[str, Any]]:
        """Events so far: name, data."""
    def log(self) -> list[str]:
        """Lines logged so far."""
    def transfers(self) -> list[dict[str, Any]]:
        """Payments so far: to, amount."""
    def messages(self) -> list[dict[str, Any]]:
        """Messages so far: to, handler, payload, value."""
    def jobs(self) -> list[dict[str, Any]]:
        """Jobs so far: job_id, spec, callback."""

class _Typing:
    Any: Any
    Callable: Any
    Iterable: Any

pvm_host: _Host
mock: _Mock
typing: _Typing

def fail(*args: Any) -> NoReturn:
    """Ends the call with this error text."""

def record(**fields: Any) -> Any:
    """A record type with these fields; call it with named fields to make a record."""

def field(of: Any, default: Any = ...) -> Any:
    """A field of a record with a default."""

def json_encode(value: Any) -> str:
    """A value as JSON. A cycle per 4 bytes."""

def json_decode(text: str) -> Any:
    """What JSON stands for. A cycle per 4 bytes."""

def keccak256(data: str) -> str:
    """Hash of the bytes that 0x-hex stands for, else of UTF-8. 60 cycles per 32 bytes."""

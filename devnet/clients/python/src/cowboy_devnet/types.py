"""The requests and answers of the control API. Written by generate.py from its OpenAPI document."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class AbsentRunner(TypedDict):
    """A runner whose bit is not set."""

    name: str
    """The runner."""
    present_count: int
    """The number of votes with its bit set."""


class Account(TypedDict):
    """An account on the chain."""

    address: "Address"
    """Its address."""
    balance: "Amount"
    """Its balance in wei, without escrow and stake."""
    name: NotRequired[str | None]
    """Its name on this devnet; absent for an address that only transactions made known."""
    next_nonce: int
    """The nonce for its next transaction, after those in the mempool."""
    nonce: int
    """The number of its transactions in blocks."""


class AccountRequest(TypedDict):
    """Gives an account a name on this devnet. The chain does not know the name."""

    address: "Address"
    """The account."""
    name: str
    """The name."""


class Actor(TypedDict):
    """A deployed actor, with a page of its store."""

    actor: "Address"
    """Its address."""
    balance: "Amount"
    """Its balance in wei."""
    code: "Hash"
    """keccak256 of its source; actors with equal source share it."""
    continuations: NotRequired["list[WaitingContinuation]"]
    """The continuations that wait for a job, if it is in Python: at most 100, by job."""
    deployed_at: int
    """The height that deployed it."""
    deployer: "Address"
    """The account that deployed it."""
    deployer_name: NotRequired[str | None]
    """That account's name, where the devnet knows one."""
    handlers: "list[Handler]"
    """Its handlers, by name."""
    language: str
    """Its language: starlark or python."""
    name: NotRequired[str | None]
    """Its name, where it was given one."""
    next: NotRequired[str | None]
    """The key to continue from; absent on the last page."""
    owner: "Address"
    """The account that owns it: the deployer, unless an actor in Python was handed over."""
    retained: int
    """Bytes of heap that its module's constants and globals keep; its deployment paid a cell for
    each.
    """
    source: str
    """Its module."""
    state: "list[StateEntry]"
    """Part of its store, by key."""


class ActorLimits(TypedDict):
    """The limits of a module and of a call of it."""

    bits: int
    """An integer, in bits."""
    blocks: int
    """Open blocks."""
    brackets: int
    """Open brackets."""
    call_depth: int
    """Nested function calls."""
    data_depth: int
    """Nesting of data that is compared, hashed, printed or turned into JSON."""
    effects: int
    """Effects of one call: messages, transfers, events."""
    entries: int
    """Entries of a list, tuple or dict."""
    heap: int
    """Heap of one call, in bytes."""
    key: int
    """A key of the store, in bytes."""
    operators: int
    """Operators nested in an expression, and branches of one `if`."""
    source: int
    """A module's source, in bytes."""
    string: int
    """A string, in bytes."""
    tokens: int
    """A module's tokens."""
    value: int
    """A value of the store, in bytes."""


class ActorLine(TypedDict):
    """A line or an event from an actor, or the error that ended a call of it."""

    data: NotRequired[Any]
    """The event's data."""
    height: int
    """The block."""
    job: NotRequired["Hash | None"]
    """The job whose callback caused it, if one did."""
    kind: "ActorLineKind"
    """The kind of the line."""
    name: NotRequired[str | None]
    """The event's name."""
    text: NotRequired[str | None]
    """The line, or the error with its place and stack; absent for an event."""
    timer: NotRequired["Hash | None"]
    """The timer whose fire caused it, if one did."""
    transaction: NotRequired["Hash | None"]
    """The transaction that caused it, if one did."""


ActorLineKind: TypeAlias = Literal["log", "event", "error"]
"""The kind of a line in an actor's log."""


class ActorLog(TypedDict):
    """Lines of an actor's log, the oldest first."""

    lines: "list[ActorLine]"
    """The lines."""
    next: int
    """The height to continue from: all current lines below it have been listed."""


class ActorParameters(TypedDict):
    """A chain's parameters for actors."""

    limits: "ActorLimits"
    """The limits of a module and of a call."""
    schedule: "ActorSchedule"
    """The costs of work, in cycles unless stated otherwise."""


class ActorReceipt(TypedDict):
    """The work of actors for a transaction, whether or not it succeeded."""

    actor: "Address"
    """The actor deployed or called."""
    deliveries: int
    """The number of calls started: the transaction's own and one per message."""
    log: "list[LogLine]"
    """The lines that actors logged, in order; kept even if the transaction failed."""
    result: NotRequired[Any]
    """The handler's return value."""
    result_bytes: NotRequired["Bytes | None"]
    """The same as bytes, if the actor is in Python and returned any."""
    usage: "Usage"
    """The usage, without the intrinsic part of the transaction."""


class ActorSchedule(TypedDict):
    """The cost of each kind of an actor's work, in cycles unless stated otherwise."""

    call: int
    """Per call, of a function or of a builtin."""
    data_bytes: int
    """Bytes that one cycle moves, compares (of both sides) or hashes."""
    emit: int
    """Per event or line of log, in addition to a cell per byte."""
    heap_kib: int
    """Per KiB of heap."""
    job: int
    """Per job submitted."""
    keccak_word: int
    """Per 32 bytes hashed with keccak256, padding included."""
    message: int
    """Per message or transfer sent."""
    module: int
    """Per module loaded, before any of it is read."""
    node: int
    """Per syntax node evaluated."""
    object: int
    """Per character that becomes a string, and per pair of `items`, `enumerate` or `zip`."""
    search_bytes: int
    """Bytes of a string that one cycle searches for another string."""
    step: int
    """Per step of a loop or a comprehension."""
    storage_read: int
    """Per key of the store read."""
    storage_write: int
    """Per key of the store written or deleted, in addition to a cell per byte."""
    text_bytes: int
    """Bytes of text that one cycle reads character by character."""
    timer: int
    """Per timer scheduled, cancelled or extended."""
    token: int
    """Per token of a module that is parsed."""
    version: int
    """The version of the table."""
    word_products: int
    """Products of two 64-bit words that one cycle buys."""


class ActorSummary(TypedDict):
    """An actor in a list."""

    actor: "Address"
    """Its address."""
    balance: "Amount"
    """Its balance in wei."""
    code: "Hash"
    """keccak256 of its source; actors with equal source share it."""
    deployed_at: int
    """The height that deployed it."""
    deployer: "Address"
    """The account that deployed it."""
    deployer_name: NotRequired[str | None]
    """That account's name, where the devnet knows one."""
    name: NotRequired[str | None]
    """Its name, where it was given one."""


Address: TypeAlias = str
"""an address: 0x and 40 hex digits"""


Advance = TypedDict(
    "Advance",
    {
        "from": int,
        "to": int,
    },
)
"""Blocks that are not paced."""


class AdvanceRequest(TypedDict):
    """Lifts the pace of blocks for a while: the chain runs as fast as consensus does."""

    blocks: int
    """Blocks beyond the head that are not paced: 1 to 100000."""
    within_ms: int
    """When the pace returns at the latest, in milliseconds from now: 1 to 3600000."""


AgentState: TypeAlias = Literal["none", "asked", "failed", "not_asked"]
"""The source of a timer's fees."""


Amount: TypeAlias = str
"""an amount: wei as a decimal number"""


class AnswerRequest(TypedDict):
    """Gives a job that waits at a runner its result."""

    failure: NotRequired[str | None]
    """Why there is no result."""
    job_id: "Hash"
    """The job."""
    result: NotRequired["Bytes | None"]
    """The result; absent with `failure`."""


class Automine(TypedDict):
    """Whether transactions get blocks at once."""

    on: bool
    """Whether a transaction that waits gets a block without waiting for the block time."""


class Block(TypedDict):
    """A finalized block."""

    cells_used: int
    """The cells its transactions and fires paid for."""
    certificate_for: list[int]
    """The heights whose finalization certificates it embeds, ascending."""
    cycles_used: int
    """The cycles its transactions and fires paid for."""
    events: "list[Event]"
    """The events of the block, in order."""
    executed_height: int
    """The newest ancestor whose state root the header commits to."""
    finalized_at: NotRequired["Time | None"]
    """When the answering validator learned that it is final; absent when it does not remember."""
    fires: "list[BlockFire]"
    """The timers that fired in it, in order."""
    hash: "Hash"
    """Its hash."""
    height: int
    """Its height; genesis is 0."""
    open: list[int]
    """The ancestors that still lack a certificate after it, ascending."""
    parent: "Hash"
    """The parent's hash; zero for genesis."""
    proposer: NotRequired[str | None]
    """The validator that proposed it; absent for genesis."""
    proposer_address: NotRequired["Address | None"]
    """The proposer's address; absent for genesis."""
    state_root: "Hash"
    """The root of the state after this block."""
    subset_epoch: int
    """The subset epoch."""
    timestamp: "Time"
    """The proposer's time, strictly increasing along the chain."""
    transactions: "list[BlockTransaction]"
    """The block's transactions, in order."""
    view: int
    """The consensus view it was proposed in."""


class BlockFire(TypedDict):
    """A timer's fire as its block shows it."""

    actor: "Address"
    """Its owner, whose handler ran."""
    cells: int
    """Cells paid for."""
    cycles: int
    """Cycles paid for."""
    due_at: int
    """The height at which it was due."""
    handler: str
    """The handler."""
    priority_per_cycle: "Amount"
    """The priority that the proposer got, in wei per cycle."""
    status: "TimerStatus"
    """`fired` or `failed`."""
    timer_id: "Hash"
    """The timer."""


class BlockNotice(TypedDict):
    """One message of the event stream: a block that is final and executed."""

    certificate_for: list[int]
    """The heights whose finalization certificates it embeds, ascending."""
    events: "list[Event]"
    """The events of the block, in order."""
    finalized_at: NotRequired["Time | None"]
    """When the answering validator learned that it is final."""
    fires: int
    """The number of timers that fired in it."""
    hash: "Hash"
    """Its hash."""
    height: int
    """Its height."""
    present: int
    """The number of runners in the block's presence."""
    proposer: NotRequired[str | None]
    """The validator that proposed it."""
    registry_len: int
    """The number of registered runners."""
    transactions: int
    """The number of its transactions."""
    view: int
    """The consensus view it was proposed in."""


class BlockTransaction(TypedDict):
    """A transaction as its block shows it."""

    hash: "Hash"
    """Its hash."""
    kind: str
    """The kind of its payload, as `transfer`."""
    sender: "Address"
    """The account that signed it."""
    status: "TransactionStatus"
    """Its status."""


class BreakerFailure(TypedDict):
    """A failure that the circuit breaker counts."""

    at: "Time"
    """When it happened."""
    pipeline: NotRequired[int | None]
    """The pipeline's number; absent when it is forgotten."""
    reason: str
    """The reason, as in a rollback."""
    task: NotRequired[str | None]
    """The task's name in the file; absent when it is forgotten."""
    task_id: "Hash"
    """The task's identifier on the chain."""


class BreakerOpened(TypedDict):
    """A circuit breaker that is not closed."""

    cause: str
    """The cause of its opening: `failures` within a minute, the `rate` of rollbacks, the failed
    `probe` that it had let through, or `slashes` within an hour.
    """
    failures: "list[BreakerFailure]"
    """The failures that opened it and those while it was open, oldest first; only the last 16."""
    lets_one_through_at: NotRequired["Time | None"]
    """When it lets a task through as a probe; absent while it waits for the outcome of one."""
    probe: NotRequired["BreakerProbe | None"]
    """The task that it has let through as a probe. Only the outcome of the probe closes the breaker
    or opens it again.
    """
    resolved: int
    """The number of the last resolved tasks that were considered when it opened, at most 20."""
    rolled_back: int
    """The number of the `resolved` tasks that had been rolled back when it opened."""
    since: "Time"
    """When it opened, or when a task last failed while it was open."""


class BreakerProbe(TypedDict):
    """A task that the circuit breaker has let through as a probe."""

    pipeline: NotRequired[int | None]
    """The pipeline's number."""
    task: NotRequired[str | None]
    """The task's name in the file."""
    task_id: "Hash"
    """The task's identifier on the chain."""


class Burned(TypedDict):
    """The wei burned since genesis, by purpose. The parts add up to the total."""

    callbacks: "Amount"
    """Payments of actors for callbacks at the ends of jobs."""
    height: int
    """The block after which these are the totals."""
    lane_basefee: "Amount"
    """The part of `timers` and `questions` that is the lane's own basefee, which only `eip1559`
    has.
    """
    penalties: "Amount"
    """Amounts slashed from stakes, balances and bonds."""
    questions: "Amount"
    """Payments of timers' owners for questions to their agents."""
    timers: "Amount"
    """Basefees of timers' fires, for cycles and cells."""
    total: "Amount"
    """The sum of the parts."""
    transactions: "Amount"
    """Basefees of transactions, for cycles and cells."""


Bytes: TypeAlias = str
"""a byte string: 0x and an even number of hex digits"""


class CallProfile(TypedDict):
    """What the lines of a call spent. Together with the cycles for loading they add up to its
    usage.
    """

    outside_cells: int
    """Cells that belong to no line: those of the result."""
    outside_cycles: int
    """Cycles that belong to no line: finding the handler, and its result as JSON."""
    spots: "list[ProfileSpot]"
    """Lines by call stack, in the order in which they were first reached."""


class Candidate(TypedDict):
    """A registered runner and the result of its filters."""

    address: "Address"
    """The runner's address."""
    filter: NotRequired[str | None]
    """The first filter that dropped it, as `presence`; absent for a survivor."""
    first_weight: NotRequired[int | None]
    """Its weight in draw 0, multiplied for the MRU runner. Absent when it was dropped, and in
    recordings of earlier versions.
    """
    reason: NotRequired[str | None]
    """The reason in words; absent for a survivor."""
    runner: str
    """The runner."""
    stake: NotRequired["Amount | None"]
    """Its stake as of the parent block, in wei, which determines its weight. Absent in recordings
    of earlier versions.
    """
    weight: NotRequired[int | None]
    """Its weight by stake; absent when it was dropped."""


class CapabilitiesRequest(TypedDict):
    """Asks a runner to withdraw some of its registered abilities for now, or to restore them."""

    add: NotRequired[list[str]]
    """The labels to restore: a kind, `llm:MODEL`, `mcp:SERVER`, `tee` or `pool:NAME`."""
    remove: NotRequired[list[str]]
    """The labels to withdraw, until the runner ends."""


class CertificateEvidence(TypedDict):
    """A certificate: the votes of a quorum that finalize a block."""

    block: "Hash"
    """The block's hash."""
    epoch: int
    """The consensus epoch."""
    namespace: "Bytes"
    """The namespace of the votes' signatures: `cowboy/`, the chain's id (8 bytes), `_FINALIZE`."""
    parent_view: int
    """The view of the parent."""
    view: int
    """The view that the votes were cast in."""
    votes: "list[VoteEvidence]"
    """The votes, ascending by index."""


class ChainAway(TypedDict):
    """An unreachable chain: no validator runs, or no block is produced."""

    paused: bool
    """Whether all attempts failed, so that no task is accepted until it is back."""
    since: "Time"
    """When it became unreachable."""
    tries: int
    """The number of attempts to reach it so far, at most ten."""


ChainId: TypeAlias = str
"""a chain id: 0x and 16 hex digits"""


class ChainTask(TypedDict):
    """A task on the chain."""

    claim: NotRequired["ChainTaskClaim | None"]
    """The claim of the agent that works on it or has completed it."""
    commitment: NotRequired["ChainTaskCommitment | None"]
    """That agent's commitment, until it is resolved."""
    completed_at: NotRequired[int | None]
    """The block it was completed in."""
    constraint_hash: NotRequired["Hash | None"]
    """hash_4 of the required output, big-endian; absent: any output is accepted."""
    created_at: int
    """The block it was created in."""
    creator: "Address"
    """The account that created it."""
    creator_name: NotRequired[str | None]
    """That account's name, where the devnet knows one."""
    deadline: int
    """The last block that may complete it."""
    depends_on: "list[Hash]"
    """Tasks that must be completed before it."""
    depth: int
    """Tasks on the longest path above it that were not completed when it was created."""
    failed_at: NotRequired[int | None]
    """The last block in which a commitment to it failed."""
    least_bond: NotRequired["Amount | None"]
    """The minimum bond of a commitment in the next block, in wei; absent when the task has ended.
    """
    order_only: "list[Hash]"
    """The tasks of `depends_on` whose outputs it does not read."""
    output_commitment: NotRequired["Hash | None"]
    """The commitment to the proved output, big-endian; absent before it is proved."""
    requirements: list[str]
    """The requirements on an agent, in the creator's words; no chain rule reads them."""
    reward: "Amount"
    """The reward for completing it, in wei."""
    status: "ChainTaskStatus"
    """Its status."""
    task_id: "Hash"
    """Its identifier."""


class ChainTaskClaim(TypedDict):
    """The claim of the agent that may complete a task."""

    agent: "Address"
    """The agent's account."""
    agent_name: NotRequired[str | None]
    """That account's name, where the devnet knows one."""
    counts: bool
    """Whether it counts in the next block, or the task is completed."""
    expires_at: int
    """The last block in which the claim counts."""


class ChainTaskCommitment(TypedDict):
    """An agent's commitment to a task's output."""

    agent: "Address"
    """The agent's account."""
    bond: "Amount"
    """The amount locked, in wei."""
    created_at: int
    """The block it was made in."""
    depth: int
    """Tasks on the longest path above it that were not completed when the commitment was made."""
    expires_at: NotRequired[int | None]
    """The last block that may complete the task with it; absent: the claim's last block."""
    inputs: "Hash"
    """The digest of the inputs of the output."""
    output_commitment: "Hash"
    """hash_2 of the output's hash and a salt, big-endian."""


ChainTaskStatus: TypeAlias = Literal["open", "claimed", "completed", "expired"]
"""The status of a task on the chain."""


class CommitRequest(TypedDict):
    """A runner's commitment to its result of a job with a committee."""

    commitment: "Hash"
    """keccak256(result ‖ the runner's signature over it)."""
    job_id: "Hash"
    """The job."""
    runner_signature: "Bytes"
    """The runner's signature, as in its `JobCommit` frame: 65 bytes."""


ComparedDraw = TypedDict(
    "ComparedDraw",
    {
        "dropped": list[str],
        "filtered": bool,
        "height": int,
        "job_id": "Hash",
        "phase": str,
        "presence_of": NotRequired[int | None],
        "same": bool,
        "with": list[str],
        "without": list[str],
    },
)
"""The actual and the hypothetical result of one draw."""


class ConfigureRequest(TypedDict):
    """Options to change: all of them, or none if one is wrong."""

    options: dict[str, str]
    """Names and values."""


class ConnectedRunner(TypedDict):
    """A runner's connection to a validator, as the validator sees it."""

    last_ping: NotRequired[int | None]
    """The height of the last valid ping; absent before the first."""
    load: NotRequired["ConnectionLoad | None"]
    """The load that the runner last reported; absent before its first report."""
    runner: "Address"
    """The runner's account."""
    unmet: NotRequired["PresenceCondition | None"]
    """The first condition that keeps the validator from counting the runner as present; absent when
    all are met.
    """
    withdrawn: NotRequired[list[str]]
    """The labels that the runner has withdrawn for now, as `llm:small`."""


class ConnectionEnd(TypedDict):
    """How a runner's connection to a validator ended."""

    by: str
    """The side that said goodbye: `validator` or `runner`; `none` when the connection broke."""
    height: int
    """The validator's head at that time."""
    reason: str
    """The reason given in the goodbye, `lost` or `handshake_timeout`."""


class ConnectionLoad(TypedDict):
    """The load that a runner reported to a validator."""

    accepting_new: bool
    """Whether it takes more; if not, that validator does not count it as present."""
    active_jobs: int
    """Jobs it works on."""
    max_concurrent: int
    """The maximum number of jobs that it takes at a time."""
    reason: NotRequired[str | None]
    """Why not, as `paused`; absent when it takes more."""


class CyclesByCause(TypedDict):
    """The causes of cycles."""

    data: int
    """Bytes and elements moved, compared, searched; large integers."""
    effects: int
    """Messages, transfers, events, logs."""
    evaluation: int
    """Syntax nodes, calls, steps of loops."""
    hashing: int
    """keccak256."""
    heap: int
    """Memory allocated."""
    loading: int
    """Reading and compiling a module."""
    storage: int
    """Stores read and written."""


Deferral = TypedDict(
    "Deferral",
    {
        "explanation": str,
        "from": int,
        "reason": "DeferralReason",
        "to": int,
    },
)
"""Consecutive blocks in which a due timer did not fire for one reason."""


DeferralReason: TypeAlias = Literal[
    "priced_out",
    "over_cap",
    "lane_full",
    "insufficient_funds",
    "gc_waiting",
]
"""Why a due timer did not fire."""


Dependency: TypeAlias = "str | DependencyEntry"
"""A dependency on a task: its name, or an object with options."""


class DependencyEntry(TypedDict):
    """A dependency with options."""

    order_only: NotRequired[bool]
    """Only orders the tasks, without reading the output: under the policy `selective` the task
    survives a rollback of this dependency.
    """
    task: str
    """The task's name."""


class Draw(TypedDict):
    """The draw of one runner."""

    draw: int
    """Its number, from 0."""
    picked: str
    """The runner whose weight covers the point."""
    picked_address: "Address"
    """That runner's address."""
    r: int
    """The drawn point, below `total`."""
    total: int
    """The sum of the weights still in the draw."""


class DryRun(TypedDict):
    """The effects that a call would have."""

    actor: "Address"
    """The actor."""
    at: int
    """The block on whose state it ran."""
    calls: NotRequired["list[TracedCall]"]
    """Every call in the order in which they began, at most 2,048, if the request asks for them;
    kept even if it fails.
    """
    changes: "list[StateChange]"
    """The changes that it would make to stores."""
    deliveries: int
    """The number of calls started: its own and one per message."""
    error: NotRequired[str | None]
    """Why it would fail: the error's name."""
    events: "list[Event]"
    """The events that it would cause, in order."""
    handler: str
    """The handler."""
    log: "list[LogLine]"
    """The lines that actors logged, in order; kept even if it fails."""
    message: NotRequired[str | None]
    """The failure in words, with its place and stack."""
    result: NotRequired[Any]
    """The handler's return value."""
    result_bytes: NotRequired["Bytes | None"]
    """The same as bytes, if the actor is in Python and returned any."""
    sender: "Address"
    """The caller."""
    success: bool
    """Whether it would succeed."""
    usage: "Usage"
    """Its usage, without the intrinsic part of a transaction."""


class DryRunRequest(TypedDict):
    """A call to try: `POST /v1/actors/{actor}/dry-run`."""

    ask_agent: NotRequired[bool | None]
    """Whether to call `getGasBid` the way the chain asks a gas bidding agent, unless the actor has
    a handler of that name (default: yes). The payload is then a JSON object with the fields of its
    `GBAContext` that differ from the next block's, as numbers or strings, and the sender counts as
    the timer's owner.
    """
    at: NotRequired[int | None]
    """The block on whose state it runs, one of the last 256 (default: the newest)."""
    cells: NotRequired[int | None]
    """Cells that it may use in addition to those for the transaction's bytes (default: the limit of
    a block).
    """
    cycles: NotRequired[int | None]
    """Cycles that it may use in addition to the intrinsic ones (default: the limit of a block)."""
    handler: str
    """The handler."""
    payload: NotRequired["Bytes"]
    """The handler's argument (default: empty)."""
    profile: NotRequired[bool | None]
    """Whether to tell every call with what each line of its module spent (default: no). Actors in
    Python have no profile by line.
    """
    sender: str
    """The caller, by name or address."""
    source: NotRequired[str | None]
    """A module to run in place of the actor's own, in the actor's language and within the limits of
    a deployment; all else of the actor stays, `init` does not run, and loading the module is not
    part of the usage, except in Python, where every call loads it (default: its own).
    """
    timer_allowance: NotRequired["Amount | None"]
    """The most wei that timers scheduled under it may ever take from the sender (default:
    unlimited, so that the events `TimerScheduled` show how much they need).
    """
    trace: NotRequired[bool | None]
    """Whether to tell every call (default: no)."""
    value: NotRequired["Amount"]
    """Wei transferred with the call from the sender's balance (default: 0)."""


DueFate: TypeAlias = Literal[
    "fires",
    "lane_full",
    "insufficient_funds",
    "priced_out",
    "over_cap",
    "expired",
]
"""The fate of a due timer in the next block, if no transaction comes before it."""


class DueTimer(TypedDict):
    """A due timer."""

    actor: "Address"
    """Its owner."""
    agent: "AgentState"
    """The source of its fees."""
    effective_tip: NotRequired["Amount | None"]
    """The priority that it would pay the proposer, in wei per cycle; absent when its cap is below
    the price.
    """
    explanation: NotRequired[str | None]
    """That reason in words, with the block's figures."""
    gba: NotRequired["Address | None"]
    """The agent."""
    height: int
    """The height at which it was due."""
    max_cost: "Amount"
    """The maximum cost of the fire, in wei."""
    next: "DueFate"
    """Its fate in the next block."""
    not_asked: NotRequired[str | None]
    """The reason why the next block does not ask the agent; absent if it does, or if the timer has
    no agent.
    """
    outlook: str
    """Its fate in words."""
    rank: NotRequired[int | None]
    """Its turn in the next block, from 1; absent when it is not ranked."""
    reason: NotRequired["DeferralReason | None"]
    """The reason why it did not fire in the newest block; absent when it was not due in that block.
    """
    timer_id: "Hash"
    """Its id."""
    weight_per_mille: NotRequired[int | None]
    """Its actor's weight, per mille; absent under `fifo`."""


class DueTimers(TypedDict):
    """The timers that are due in the next block, in the order in which its lane would take them if
    no transaction came before them.
    """

    capacity: int
    """Cycles of that block's lane."""
    cell_capacity: int
    """Cells of that block's lane."""
    cycle_price: "Amount"
    """The price of a fire's cycle in that block before priority, in wei."""
    due: int
    """The number of timers due in that block."""
    height: int
    """The next block."""
    next: NotRequired[int | None]
    """The offset of the next page; absent on the last page."""
    policy: str
    """Its policy."""
    ranked: int
    """The number of due timers that are ranked."""
    timers: "list[DueTimer]"
    """A page of the due timers: the ranked ones by rank, then the others, the longest waiting
    first.
    """


class ErrorBody(TypedDict):
    """The body of every response that is not a success."""

    error: "ErrorDetail"
    """The failure."""


ErrorCode: TypeAlias = Literal[
    "not_found",
    "rejected",
    "unavailable",
    "bad_request",
    "unauthorized",
    "gone",
    "conflict",
    "timeout",
    "internal",
]
"""The class of a failure; each has one HTTP status."""


class ErrorDetail(TypedDict):
    """A failure, for programs (`code`, `name`) and for people (`message`, `hint`)."""

    code: "ErrorCode"
    """The class of the failure."""
    hint: NotRequired[str | None]
    """How to fix it; one line."""
    message: str
    """The failure in words, and its subject; one line."""
    name: NotRequired[str | None]
    """The protocol error's name, as `InsufficientFunds`: present when the chain refused."""


class Event(TypedDict):
    """Something that happened in a block."""

    data: dict[str, Any]
    """The event's own fields, amounts and byte strings as text."""
    height: int
    """The block's height."""
    index: int
    """The event's index in the block."""
    job_id: NotRequired["Hash | None"]
    """The job it is about, if it is about one."""
    kind: str
    """The event's name, as `JobAssigned`."""
    timer: NotRequired["Hash | None"]
    """The timer whose fire caused it, if one did."""
    timer_id: NotRequired["Hash | None"]
    """The timer it is about, or the timer that caused it by firing."""
    transaction: NotRequired["Hash | None"]
    """The transaction that caused it, if one did."""


class EventPage(TypedDict):
    """A run of events in the order they happened. A page never ends within a block."""

    events: "list[Event]"
    """The events."""
    next: NotRequired[int | None]
    """The height to continue from; absent when the page reaches the head."""


class Evidence(TypedDict):
    """A block, its certificate and the presence derived from it, as bytes and as fields. The fields
    follow from the bytes.
    """

    block_bytes: "Bytes"
    """Header, certificates and transactions: deterministic CBOR, docs/verification.md."""
    certificate: NotRequired["CertificateEvidence | None"]
    """The fields of `certificate_bytes`; absent when those are not a certificate."""
    certificate_bytes: NotRequired["Bytes | None"]
    """A certificate of this block, as it is stored: the one embedded in the chain, or else the one
    that the validator holds. Absent when there is neither.
    """
    embedded: "list[CertificateEvidence]"
    """The certificates of ancestors that the block embeds, ascending."""
    hash: "Hash"
    """Its hash."""
    header: "HeaderEvidence"
    """The fields of the header."""
    height: int
    """The block's height."""
    presence: NotRequired["PresenceEvidence | None"]
    """P(height) as the answering validator stores it; absent when no block embeds a certificate."""
    state_root: "Hash"
    """The root of the state after it, as the answering validator computed it."""
    transactions: "list[Hash]"
    """The hashes of the transactions, in order."""


class EvidencePage(TypedDict):
    """Consecutive final blocks in their canonical form."""

    blocks: "list[RawBlock]"
    """The blocks, ascending."""
    head: int
    """The newest block of the validator that answers."""


class Explanation(TypedDict):
    """An explanation of how a job's runners were drawn."""

    attempt: int
    """The number of the attempt, from 1."""
    block_hash: "Hash"
    """The parent block's hash."""
    candidates: "list[Candidate]"
    """Every runner of the registry, in its order."""
    candidates_root: NotRequired["Hash | None"]
    """The Merkle root of the surviving candidates, as stored with the job."""
    deadline: int
    """The last block of the attempt that the job is in, or ended in."""
    draws: "list[Draw]"
    """The single draws; empty while there are too few candidates."""
    height: int
    """The block that drew; before the first draw, the last one that tried."""
    job_id: "Hash"
    """The job."""
    mru: NotRequired[str | None]
    """The submitter's live MRU runner, which draw 0 favours with a multiplied weight."""
    mru_record: NotRequired["MruRead | None"]
    """The MRU record that the draw read, even if it had expired; absent if there was no record."""
    passed: int
    """The number of registered runners that passed the filters."""
    phase: NotRequired[str | None]
    """The migration phase of the draw: `shadow`, `hot-path` or `sunset`. Absent in recordings of
    earlier versions.
    """
    presence: NotRequired["PresenceRead | None"]
    """The P(h) that the draw read; absent: none was recent enough, and no runner counted as
    present.
    """
    seed: "Hash"
    """The seed of the draw."""
    seed_source: NotRequired["SeedSource | None"]
    """The source of the seed; a later attempt derives its seed from the first attempt's. Absent in
    recordings of earlier versions.
    """
    status: "JobStatus"
    """The current status of the job."""
    under_other_rules: NotRequired["list[UnderRule]"]
    """The results of the same votes, seed and MRU record under each threshold rule, and without the
    presence filter. Empty when the votes are no longer kept.
    """
    wanted: int
    """The number of runners that the job wants."""
    withdrawn: NotRequired["list[Withdrawal]"]
    """Runners that have told a validator of this devnet that for now they cannot do work that the
    job needs. This is live and not part of the chain.
    """


class FailureRequest(TypedDict):
    """A runner's report that it cannot do a job assigned to it."""

    job_id: "Hash"
    """The job."""
    reason: str
    """The reason, for people: at most 256 bytes."""
    runner_signature: "Bytes"
    """The runner's signature, as in its `JobFailure` frame: 65 bytes."""


class Fairness(TypedDict):
    """The accounts that the next block favours, and their weights."""

    height: int
    """The block after which this is the state."""
    members: "list[FairnessMember]"
    """The listed accounts, most fires first, at most 1,000. Under `eip1559`: those that fired in
    the window; an account that is not listed has weight 2. Under `gba-auction`: those that fired in
    the window and those with a weight other than 1; an account that is not listed has weight 1.
    """
    policy: str
    """The policy of the next block."""
    scope: str
    """The unit that fires are counted by: `actor` or `deployer`."""
    twice_median: int
    """Twice the median number of fires of the accounts that fired."""
    window_blocks: int
    """The number of blocks in the window."""


class FairnessMember(TypedDict):
    """An account that fired in the window, or has a weight of its own."""

    account: "Address"
    """The actor, or the deployer."""
    recent: int
    """Fires in the window."""
    weight_per_mille: int
    """Its weight, per mille: from 1000 to 2000 under `eip1559`; from 500 to 2000 under `gba-
    auction`, where only actors have weights and a deployer has 1000.
    """


class FaultSpecKill(TypedDict):
    """A node ends as in a crash."""

    at: str
    """The node."""
    kind: Literal["kill"]


class FaultSpecPause(TypedDict):
    """No message reaches a node or leaves it."""

    at: str
    """The node."""
    kind: Literal["pause"]


class FaultSpecPartition(TypedDict):
    """Nothing passes between groups of nodes."""

    groups: list[list[str]]
    """The groups; the remaining nodes form one more group."""
    kind: Literal["partition"]


class FaultSpecLatency(TypedDict):
    """Messages take longer, in both directions."""

    at: str
    """The node or link."""
    delay_us: int
    """The extra delay of each message, in microseconds."""
    jitter_us: NotRequired[int]
    """The maximum additional delay, in microseconds, drawn uniformly from 0 to this."""
    kind: Literal["latency"]


class FaultSpecLoss(TypedDict):
    """Messages are lost, in both directions."""

    at: str
    """The node or link."""
    kind: Literal["loss"]
    per_mille: int
    """The number of messages lost per thousand."""


class FaultSpecLie(TypedDict):
    """A validator's votes misreport which runners it sees."""

    at: str
    """The validator."""
    kind: Literal["lie"]
    of: NotRequired[str | None]
    """The runner that they misreport, by name or address (default: all runners)."""
    votes: "LieKind"
    """The content of the false votes."""


FaultSpec: TypeAlias = (
    FaultSpecKill
    | FaultSpecPause
    | FaultSpecPartition
    | FaultSpecLatency
    | FaultSpecLoss
    | FaultSpecLie
)
"""What goes wrong, and where. Nodes are named by name or address; `at` is a node (all its links) or
two nodes with two dots between them (the link between them).
"""


class FaultFields(TypedDict):
    delayed: int
    """Messages and datagrams that it has delayed so far."""
    dropped: int
    """Messages between validators and datagrams to and from runners that it has dropped so far."""
    id: int
    """Its number."""
    lies: int
    """Votes that it has falsified so far."""
    others: NotRequired[list[str]]
    """The nodes outside all groups of a partition. They form one more group."""
    seed: int
    """The seed of losses and jitter."""
    since: int
    """The newest height when it was injected."""
    until: NotRequired["Time | None"]
    """The time at which it heals by itself."""
    until_height: NotRequired[int | None]
    """The height at which it heals by itself."""


class FaultKill(FaultSpecKill, FaultFields):
    """A fault in force, or one that was just healed."""


class FaultPause(FaultSpecPause, FaultFields):
    """A fault in force, or one that was just healed."""


class FaultPartition(FaultSpecPartition, FaultFields):
    """A fault in force, or one that was just healed."""


class FaultLatency(FaultSpecLatency, FaultFields):
    """A fault in force, or one that was just healed."""


class FaultLoss(FaultSpecLoss, FaultFields):
    """A fault in force, or one that was just healed."""


class FaultLie(FaultSpecLie, FaultFields):
    """A fault in force, or one that was just healed."""


Fault: TypeAlias = FaultKill | FaultPause | FaultPartition | FaultLatency | FaultLoss | FaultLie
"""A fault in force, or one that was just healed."""


FaultEntry: TypeAlias = str | dict[str, int]
"""A fault to inject: a name, or a name with an amount."""


class FaultOrderFields(TypedDict):
    id: int
    """Its number."""
    seed: int
    """The seed of losses and jitter."""


class FaultOrderKill(FaultSpecKill, FaultOrderFields):
    """A fault that a node in a process of its own carries out, as its devnet tells it."""


class FaultOrderPause(FaultSpecPause, FaultOrderFields):
    """A fault that a node in a process of its own carries out, as its devnet tells it."""


class FaultOrderPartition(FaultSpecPartition, FaultOrderFields):
    """A fault that a node in a process of its own carries out, as its devnet tells it."""


class FaultOrderLatency(FaultSpecLatency, FaultOrderFields):
    """A fault that a node in a process of its own carries out, as its devnet tells it."""


class FaultOrderLoss(FaultSpecLoss, FaultOrderFields):
    """A fault that a node in a process of its own carries out, as its devnet tells it."""


class FaultOrderLie(FaultSpecLie, FaultOrderFields):
    """A fault that a node in a process of its own carries out, as its devnet tells it."""


FaultOrder: TypeAlias = (
    FaultOrderKill
    | FaultOrderPause
    | FaultOrderPartition
    | FaultOrderLatency
    | FaultOrderLoss
    | FaultOrderLie
)
"""A fault that a node in a process of its own carries out, as its devnet tells it."""


class FaultOrders(TypedDict):
    """The faults that a node carries out, in place of those that it had."""

    faults: "list[FaultOrder]"
    """The faults, oldest first. One that the node has by its number goes on."""


class FaultRequestFields(TypedDict):
    for_blocks: NotRequired[int | None]
    """The fault heals by itself after this many blocks."""
    for_ms: NotRequired[int | None]
    """The fault heals by itself after this many milliseconds."""
    seed: NotRequired[int | None]
    """The seed of losses and jitter (default: the devnet's seed)."""


class FaultRequestKill(FaultSpecKill, FaultRequestFields):
    """A fault to inject."""


class FaultRequestPause(FaultSpecPause, FaultRequestFields):
    """A fault to inject."""


class FaultRequestPartition(FaultSpecPartition, FaultRequestFields):
    """A fault to inject."""


class FaultRequestLatency(FaultSpecLatency, FaultRequestFields):
    """A fault to inject."""


class FaultRequestLoss(FaultSpecLoss, FaultRequestFields):
    """A fault to inject."""


class FaultRequestLie(FaultSpecLie, FaultRequestFields):
    """A fault to inject."""


FaultRequest: TypeAlias = (
    FaultRequestKill
    | FaultRequestPause
    | FaultRequestPartition
    | FaultRequestLatency
    | FaultRequestLoss
    | FaultRequestLie
)
"""A fault to inject."""


class Fee(TypedDict):
    """The fee that a transaction paid, by purpose."""

    burned: "Amount"
    """The basefee part, burned."""
    cells: int
    """Cells used."""
    cycles: int
    """Cycles paid for."""
    tip: "Amount"
    """The priority part, to the proposer."""
    unused: int
    """The part of `cycles` that was bought but not used: a deployment or a call pays for a minimum
    share of the cycles that it buys.
    """


class GbaContext(TypedDict):
    """The input of a gas bidding agent, `GBAContext`."""

    basefee_cell: "Amount"
    """Basefee of a cell, in wei."""
    basefee_cycle: "Amount"
    """Basefee of a cycle, in wei."""
    basefee_lane_timer: "Amount"
    """The lane's price of a cycle, in wei."""
    current_block_height: int
    """The block that asks the agent."""
    last_block_cycle_usage: int
    """Cycles that the previous block used."""
    owner_actor_balance: "Amount"
    """The balance of the timer's owner, in wei."""
    previous_block_p50_priority_tip_per_cycle: "Amount"
    """Median tip of the previous block, in wei per cycle."""
    trigger_block_height: int
    """The height at which the timer is due."""


class GovernedParameter(TypedDict):
    """A governed parameter."""

    about: str
    """Its meaning and unit."""
    choices: NotRequired[list[str]]
    """The allowed words; empty for a number, and for a parameter that is fixed at genesis, which
    has no bounds either.
    """
    genesis: "Setting"
    """Its value at genesis."""
    key: str
    """Its key on the chain, as `system:cip5:lane_timer_cycles`."""
    max: NotRequired[int | None]
    """The maximum; absent for a word."""
    min: NotRequired[int | None]
    """The minimum; absent for a word."""
    name: NotRequired[str]
    """The topology field that sets its genesis value, as `timers.lane_timer_cycles`."""
    pending: NotRequired["list[PendingSetting]"]
    """Other values proposed, by height."""
    since: NotRequired[int | None]
    """The first block with this value, if the chain stores it."""
    source: str
    """The document that defines it."""
    unit: str
    """The unit of its value; `word` for a word."""
    value: "Setting"
    """Its value from the next block on."""


class Handler(TypedDict):
    """A function of an actor that transactions and messages can call."""

    line: int
    """The line that defines it, from 1."""
    name: str
    """Its name."""
    parameters: list[str]
    """Its parameters' names."""


Hash: TypeAlias = str
"""a hash: 0x and 64 hex digits"""


class Head(TypedDict):
    """The newest finalized and executed block."""

    finalized_at: NotRequired["Time | None"]
    """When the answering validator learned that it is final; absent for genesis."""
    hash: "Hash"
    """Its hash."""
    height: int
    """Its height."""


class HeaderEvidence(TypedDict):
    """The fields that a block's hash covers."""

    certificates_root: "Hash"
    """Commits to the embedded certificates."""
    epoch: int
    """The consensus epoch."""
    executed_height: int
    """The newest certified ancestor."""
    executed_state_root: "Hash"
    """The root of the state after that ancestor."""
    height: int
    """The block's height."""
    open: "list[OpenBlock]"
    """Ancestors that still lack a certificate, oldest first."""
    parent: "Hash"
    """The parent's hash."""
    parent_view: int
    """The view of the parent."""
    proposer: "Bytes"
    """The proposer's Ed25519 key, 32 bytes."""
    subset_epoch: int
    """The subset epoch."""
    timestamp_ms: int
    """Unix time in milliseconds by the proposer's clock."""
    transactions_root: "Hash"
    """Commits to the transactions."""
    view: int
    """The view that it was first proposed in."""


class Job(TypedDict):
    """A job with its parameters and events."""

    assigned_at: NotRequired[int | None]
    """The height of the last draw; absent before the first."""
    attempts: int
    """The number of draws so far."""
    committee: list[str]
    """The runners drawn last, in draw order; empty before the first draw."""
    committee_addresses: "list[Address]"
    """The addresses of the committee, in the same order."""
    deadline: int
    """The height at which the current attempt ends."""
    error: NotRequired[str | None]
    """Why it failed; absent unless it did."""
    events: "list[JobEvent]"
    """The events about it, in order."""
    final_at: NotRequired[int | None]
    """The height that made it final; absent before."""
    job_id: "Hash"
    """Its identifier."""
    kind: str
    """Its kind: `llm`, `http`, `mcp`, `eth_send` or `custom`."""
    latency_ms: NotRequired[int | None]
    """From the recording block's timestamp to the final block's, in milliseconds; absent before."""
    max_price: "Amount"
    """The maximum that the submitter pays, in wei."""
    name: NotRequired[str | None]
    """Its name, where it was given one."""
    paid: NotRequired["Amount | None"]
    """The amount paid to runners, in wei; absent before it is final."""
    progress: NotRequired["list[RunnerProgress]"]
    """The progress of its runners while it is open, as each last reported it over a connection to a
    validator of this devnet. These reports are live, not part of the chain and not verified; a
    runner that polls sends none.
    """
    result: NotRequired["Bytes | None"]
    """The verified result; absent before."""
    result_text: NotRequired[str | None]
    """The result as text, if it is UTF-8."""
    runner: NotRequired[str | None]
    """The runner that produced the result."""
    spec: dict[str, Any]
    """The job's parameters, byte strings as text."""
    status: "JobStatus"
    """Its status."""
    submitted_at: int
    """The height that recorded it."""
    submitter: "Address"
    """The account that submitted it."""
    submitter_name: NotRequired[str | None]
    """That account's name, where the devnet knows one."""


class JobDispatch(TypedDict):
    """The dispatch of a job by one validator to one runner."""

    answered_ms: NotRequired[int | None]
    """From the dispatch to the runner's answer, in milliseconds; absent without an answer."""
    assigned_at: int
    """The block that assigned the job."""
    done_ms: NotRequired[int | None]
    """From the dispatch to the end of an accepted job, in milliseconds."""
    outcome: str
    """The outcome: `waiting` until the runner answers; `accepted`, and then `done` once it has
    delivered the result, a commitment or a failure report; `duplicate` when the runner has the job
    from another validator; the reason of a rejection; `no_ack` for a frame that is not an answer;
    `silent` when no answer came in time.
    """
    runner: str
    """The runner."""
    started_ms: NotRequired[int | None]
    """From the dispatch to the runner's first report that it works on the job, in milliseconds;
    absent when it reported nothing to this validator.
    """
    validator: str
    """The validator."""


class JobEvent(TypedDict):
    """An event about a job."""

    data: dict[str, Any]
    """The event's own fields."""
    event: str
    """The event's name, as `JobAssigned`."""
    height: int
    """The block's height."""
    timestamp: "Time"
    """When the block was proposed."""


class JobResult(TypedDict):
    """A job's verified result."""

    final_at: int
    """The height that made it final."""
    job_id: "Hash"
    """The job."""
    result: "Bytes"
    """The bytes."""
    result_text: NotRequired[str | None]
    """The bytes as text, if they are UTF-8."""
    runner: str
    """The runner that produced the result."""
    runner_address: "Address"
    """The runner's address."""


JobStatus: TypeAlias = Literal[
    "Pending",
    "Assigned",
    "Running",
    "Committed",
    "Verified",
    "Failed",
    "Cancelled",
]
"""The status of a job."""


class JobSummary(TypedDict):
    """A job in a list."""

    committee: list[str]
    """The runners drawn last, in draw order."""
    final_at: NotRequired[int | None]
    """The height that made it final; absent before."""
    job_id: "Hash"
    """Its identifier."""
    kind: str
    """Its kind: `llm`, `http`, `mcp`, `eth_send` or `custom`."""
    name: NotRequired[str | None]
    """Its name, where it was given one."""
    status: "JobStatus"
    """Its status."""
    submitted_at: int
    """The height that recorded it."""
    submitter: "Address"
    """The account that submitted it."""
    submitter_name: NotRequired[str | None]
    """That account's name, where the devnet knows one."""


class JoinRequest(TypedDict):
    """Asks for a new validator to join."""

    name: NotRequired[str | None]
    """Its name (default: the first free `validator-N`)."""


class LaneBlock(TypedDict):
    """The work of a block's timer lane."""

    asked: int
    """The number of gas bidding agents asked for a bid."""
    capacity: int
    """Cycles that the lane has."""
    cell_capacity: int
    """Cells that the lane has."""
    cells: int
    """Cells that fires used."""
    consumed: int
    """Cycles that fires used."""
    cycle_price: NotRequired["Amount"]
    """The total price of a fire's cycle before priority, in wei; 0 in recordings of earlier
    versions.
    """
    deferred: int
    """Timers that were due and did not fire."""
    expired: int
    """Timers removed because they had expired."""
    fired: int
    """Timers that fired."""
    height: int
    """The block."""
    insolvent: int
    """Timers removed because their payer could not pay, or had not promised enough."""
    lane_basefee: "Amount"
    """The lane's own basefee per cycle, in wei, which a fire pays on top of the cycle basefee under
    `eip1559`. The other policies have none: there it is the cycle basefee itself.
    """
    least_priority: NotRequired["Amount | None"]
    """The lowest priority of the timers that fired, in wei per cycle; absent when none fired."""
    over_cap: int
    """Deferred timers that ask for more cycles or cells than a fire may get."""
    p50_tip: "Amount"
    """Median priority of the timers that fired, in wei per cycle."""
    policy: str
    """The policy: `eip1559`, `fifo` or `gba-auction`."""
    priced_out: int
    """Deferred timers with a cap that did not cover the price."""
    questions: "Amount"
    """The price that the timers' owners paid for these questions, in wei, burned."""
    utilisation_per_mille: int
    """consumed / capacity, per mille."""


class Left(TypedDict):
    """The validator has left the devnet."""

    name: str
    """Its name."""


LieKind: TypeAlias = Literal["ones", "zeros", "flip"]
"""The content of a lying vote."""


class LimitRequest(TypedDict):
    """Changes the number of jobs that a runner takes at a time."""

    max_concurrent: int
    """The new maximum, until the runner ends: 1 to 1,024."""


class LogLine(TypedDict):
    """A line that an actor printed or logged."""

    actor: "Address"
    """The actor."""
    text: str
    """The line."""


class MruRead(TypedDict):
    """The MRU record that a draw read."""

    age: int
    """Blocks from then to the block that drew."""
    applied: bool
    """Whether the factor was applied: the record was live, and its runner a candidate."""
    multiplier: int
    """The factor of the runner's weight in draw 0."""
    runner: str
    """The runner."""
    runner_address: "Address"
    """The runner's address."""
    set_at: int
    """The height that set it."""
    ttl_blocks: int
    """The number of blocks for which it counts."""


class MruRecord(TypedDict):
    """The most recently used runner of a submitter for a kind of job."""

    expires_at: int
    """The last height at which it counts."""
    kind: str
    """The kind of job: `llm`, `http`, `mcp`, `eth_send` or `custom`."""
    live: bool
    """Whether it counts now."""
    runner: str
    """The runner."""
    runner_address: "Address"
    """The runner's address."""
    set_at: int
    """The height that set it."""
    submitter: "Address"
    """The account that submits."""
    submitter_name: NotRequired[str | None]
    """That account's name, where the devnet knows one."""


class NameRequest(TypedDict):
    """Gives an actor, a timer or a job a name."""

    id: NotRequired[str | None]
    """The address of an actor, or the id of a timer or a job. Absent: nothing is named, and the
    answer tells whether the name is free.
    """
    kind: "NamedKind"
    """The kind of object to name."""
    name: str
    """The name: 1 to 32 characters of a-z, 0-9 and -; it neither begins with - or 0x nor is
    `latest`.
    """


NamedKind: TypeAlias = Literal["actor", "timer", "job"]
"""The kind of object that a name is given to."""


class NodePeer(TypedDict):
    """Where a validator is."""

    consensus_key: "Bytes"
    """Its ed25519 key."""
    name: str
    """Its name."""
    p2p: str
    """Where it listens for other validators: `HOST:PORT`."""


class NodePeers(TypedDict):
    """Where the validators of a chain are, for a node in a process of its own."""

    validators: "list[NodePeer]"
    """The validators, in the same order for all nodes."""


class OpenBlock(TypedDict):
    """An ancestor without a certificate."""

    hash: "Hash"
    """Its hash."""
    height: int
    """Its height."""


class Parameters(TypedDict):
    """The chain's parameters and limits that a signer has to know."""

    actors: "ActorParameters"
    """The costs and limits of actors' work."""
    ahead_ms: NotRequired[int]
    """How far the timestamps of new blocks are ahead of the clocks of their proposers, in
    milliseconds.
    """
    block_time_ms: int
    """The pace of blocks, in milliseconds."""
    cell_basefee: "Amount"
    """Wei burned per cell."""
    cell_limit: int
    """Maximum cells in a block."""
    chain_id: "ChainId"
    """The chain id that every transaction carries."""
    cycle_basefee: "Amount"
    """Wei burned per cycle."""
    cycle_limit: int
    """Maximum cycles in a block."""
    epoch_blocks: int
    """Blocks in a consensus epoch: epoch e begins at block e × `epoch_blocks`. The set of
    validators changes only when an epoch begins.
    """
    genesis: "Hash"
    """The hash of the genesis block."""
    height: int
    """The height that the basefees apply to: the next block's."""
    phase: str
    """The migration phase of that height: `shadow`, `hot-path` or `sunset`."""
    phase_since: int
    """The first block in that phase."""
    proofs: "ProofParameters"
    """How tasks are proved."""
    python: NotRequired["PythonParameters | None"]
    """The machine of actors in Python; absent if the chain has none."""
    runners: int
    """Runners in the registry."""
    selection_seed: NotRequired[str | None]
    """The source of the draws' seeds, fixed at genesis: `parent` or `certificate`. Absent in
    recordings of earlier versions.
    """
    threshold_rule: str
    """How votes become presence: `committee`, `quorum` or `subset`."""
    validators: int
    """Validators in the set."""


class PendingSetting(TypedDict):
    """Another value of a governed parameter, from a height on."""

    by: NotRequired["Address | None"]
    """The last proposer for that height; absent: the genesis document."""
    height: int
    """The first block with the value."""
    value: "Setting"
    """The value."""


class PipelineSummary(TypedDict):
    """A pipeline in a list."""

    confirmed: int
    """The number of confirmed tasks."""
    elapsed_ms: int
    """From then until its last task was final, or until now, in milliseconds."""
    name: str
    """Its name."""
    outputs_ms: NotRequired[int | None]
    """From then until the last output that counts was ready, in milliseconds; absent while one is
    missing.
    """
    pipeline: int
    """Its number, from 1."""
    proofs: NotRequired["ProofCounts"]
    """The proofs of its tasks by stage, while it runs; zeros once it has ended."""
    status: "PipelineStatus"
    """Its status."""
    submitted_at: "Time"
    """When it was accepted."""
    synchronous_ms: NotRequired[int | None]
    """The time in milliseconds that the same devnet takes for it with speculation off, with its
    parallel branches, provers and submissions: measured if no task of it speculated, otherwise
    computed from the times of its tasks. Absent until all tasks are confirmed.
    """
    tasks: int
    """The number of its tasks."""
    undone: int
    """The number of tasks that failed, were rolled back or cancelled."""


class Pipeline(PipelineSummary):
    """A pipeline with its graph."""

    graph: "list[SpeculativeTask]"
    """Its tasks, in the order of its file: a task may come before the tasks that it depends on."""


class PipelineAccepted(TypedDict):
    """The answer for an accepted pipeline."""

    name: str
    """Its name."""
    pipeline: int
    """Its number, from 1."""
    tasks: int
    """The number of its tasks."""


class PipelineRequest(TypedDict):
    """A pipeline of tasks."""

    name: str
    """Its name."""
    tasks: "list[TaskEntry]"
    """Its tasks, 1 to [`MAX_TASKS`], in any order."""


PipelineStatus: TypeAlias = Literal["running", "completed", "failed", "cancelled"]
"""The status of a pipeline."""


class PolledJob(TypedDict):
    """A job as a runner polls it, with the contents of its `JobAssignment` frame."""

    assigned_at: int
    """The height that assigned it."""
    deadline_block: int
    """The last block whose results count."""
    job_id: "Hash"
    """Its identifier."""
    proof: NotRequired["Bytes | None"]
    """The proof that the chain assigns it to this runner, in the format of docs/proofs.md. Absent
    when one more block is needed to prove it, or when the runner need not do the work.
    """
    spec: "Bytes"
    """The frame's `job_spec`, deterministic CBOR."""
    wants: "Wanted"
    """The next step that the chain expects from this runner."""


class PolledJobs(TypedDict):
    """The open jobs assigned to a runner, as it polls them."""

    height: int
    """The newest block of the validator that answers."""
    jobs: "list[PolledJob]"
    """The jobs, in the order of their assignment."""
    more: bool
    """Whether there are more, which are listed once these are done."""
    phase: str
    """The migration phase of the next block: `shadow` or `hot-path`."""


class Pool(TypedDict):
    """A pool of runners: a job may require that its runners are members."""

    members: "list[PoolMember]"
    """Its members by address, including those whose membership has expired."""
    owner: "Address"
    """The account that granted the first membership, and grants and revokes memberships."""
    owner_name: NotRequired[str | None]
    """That account's name, where the devnet knows one."""
    pool: str
    """Its name."""


class PoolMember(TypedDict):
    """A member of a pool."""

    address: "Address"
    """Its address."""
    live: bool
    """Whether it is a member at the newest block."""
    runner: str
    """The runner's name, or its address when the devnet knows no name."""
    valid_until: NotRequired[int | None]
    """The last height at which it is a member; absent: a member until revoked."""


class Presence(TypedDict):
    """P(H): the runners that the finalization certificate of H shows as present."""

    absent: "list[AbsentRunner]"
    """The runners whose bit is not set."""
    bitmap: "Bytes"
    """Bit i is runner i, least significant bit first, padding zero."""
    embedded_in: int
    """The block that embeds the certificate: the first on the chain that does."""
    height: int
    """H: the block that the votes are on."""
    present: list[str]
    """The runners whose bit is set."""
    registry_len: int
    """The number of runners in the bitmap, in registry order as of the parent block."""
    rule: str
    """How votes become presence: `committee`, `quorum` or `subset`."""
    threshold: NotRequired[int | None]
    """The votes a runner needs; absent under `subset`, where each runner has its own."""
    votes: int
    """The votes in the certificate."""


PresenceComparison = TypedDict(
    "PresenceComparison",
    {
        "changed": int,
        "compared": int,
        "draws": "list[ComparedDraw]",
        "from": int,
        "more": bool,
        "to": int,
        "would_have_waited": int,
    },
)
"""The runners that draws chose, and those they would have chosen with the presence filter switched
the other way. Only the last draw of each job is compared. Each draw is compared in isolation: the
effect of a different choice on later draws is ignored.
"""


PresenceCondition: TypeAlias = Literal[
    "insufficient_stake",
    "deregistered",
    "not_in_subset",
    "not_connected",
    "no_recent_ping",
    "takes_no_jobs",
    "withdrew_what_is_needed",
    "too_few_votes",
]
"""A condition of presence that a runner does not meet."""


class PresenceEvidence(TypedDict):
    """P(H) as a validator stores it."""

    bit_length: int
    """The length of the bitmap in bits."""
    bitmap: "Bytes"
    """P(H), least significant bit first, padding zero."""
    embedded_in: int
    """The block that embeds the certificate."""
    registry: "list[Address]"
    """The runners that the bits refer to, in registry order as of the parent block."""


class PresenceRead(TypedDict):
    """The P(h) that a draw read."""

    age: int
    """Blocks from h to the parent of the block that drew."""
    block_hash: NotRequired["Hash | None"]
    """The hash of block h, the certified block; absent, as are `votes` and `embedded_in`, when the
    certificate is no longer kept.
    """
    embedded_in: NotRequired[int | None]
    """The block that embeds the certificate."""
    height: int
    """h: the block that the votes are on."""
    rule: str
    """How votes become presence: `committee`, `quorum` or `subset`."""
    votes: NotRequired[int | None]
    """The number of votes in the certificate."""


PresenceStanding: TypeAlias = Literal["present", "absent", "stale", "halted", "unknown"]
"""Whether the next draw finds a runner present."""


class ProfileSpot(TypedDict):
    """A line of a function, as part of a call stack."""

    by: NotRequired[int | None]
    """The index of the line that called the function, which is lower than this one's; absent for
    the handler itself.
    """
    cells: int
    """Likewise cells."""
    cycles: int
    """Cycles spent in it, without functions of the module that it called."""
    function: str
    """The function."""
    line: int
    """The line of the source, from 1."""
    times: int
    """How often the line's first operation ran."""


class ProofCounts(TypedDict):
    """The number of proofs in each stage."""

    in_flight: int
    """They are on their way to the chain."""
    proving: int
    """They are being made."""
    queued: int
    """No prover has started on them."""
    ready: int
    """They are sent as soon as there is a slot, or were lost and are sent again."""
    waiting: int
    """They wait until every ancestor is confirmed."""


class ProofParameters(TypedDict):
    """How tasks are proved."""

    generator: str
    """The kind of proof: `groth16`, or `mock`, which proves nothing."""
    verifying_key: NotRequired["Hash | None"]
    """keccak256 of the key that verifies proofs; absent for `mock`."""


PublicKey: TypeAlias = str
"""a compressed secp256k1 public key: 0x and 66 hex digits"""


class PythonParameters(TypedDict):
    """The machine of actors in Python, and what its work costs."""

    fuel_per_cycle: int
    """Fuel that a cycle buys."""
    instance: int
    """Cycles of a fresh instance, which each call pays."""
    machine: "Hash"
    """Its id: keccak256 of everything that results and fuel depend on."""


class RawBlock(TypedDict):
    """A block in its canonical form."""

    block_bytes: "Bytes"
    """Header, certificates and transactions: deterministic CBOR, docs/verification.md."""
    certificate_bytes: NotRequired["Bytes | None"]
    """A certificate of this block: the one embedded in the chain, or else the one that the
    validator holds. Absent when there is neither.
    """
    hash: "Hash"
    """Its hash."""
    height: int
    """Its height."""
    state_root: "Hash"
    """The root of the state after it, as the answering validator computed it."""


class ReputationStep(TypedDict):
    """A change of a runner's reputation."""

    after: int
    """The reputation after."""
    before: int
    """The reputation before."""
    height: int
    """The block."""
    job_id: "Hash"
    """The job that caused it."""


class ResultAccepted(TypedDict):
    """A validator accepted the result, the commitment or the report and submits it to the chain,
    unless it has done so before.
    """

    job_id: "Hash"
    """The job."""


class ResultRequest(TypedDict):
    """A runner's result of a job assigned to it."""

    job_id: "Hash"
    """The job."""
    result: "Bytes"
    """The result."""
    runner_signature: "Bytes"
    """The runner's signature, as in its `JobResult` frame: 65 bytes."""


class RetryRequest(TypedDict):
    """Tasks to try again."""

    tasks: NotRequired[list[str]]
    """The names of tasks to retry, with the tasks rolled back below them; empty: all that failed or
    were rolled back.
    """


class Rollback(TypedDict):
    """A rollback that was carried out."""

    at: "Time"
    """When it happened."""
    pipeline: int
    """The pipeline's number."""
    reason: str
    """The reason: `proof_failed`, `proof_timeout`, `ancestor_failed`, `claim_expired`,
    `manual_cancel` or `commitment_expired`.
    """
    released: "Amount"
    """The part of their bonds that the chain has released so far, in wei."""
    slashed: "Amount"
    """The part of their bonds that the chain has slashed so far, in wei."""
    task: str
    """The name of the task that failed."""
    task_id: "Hash"
    """That task's identifier on the chain."""
    tasks: int
    """The number of tasks undone, including the one that failed."""
    undone: list[str]
    """The names of the undone tasks in the order of undoing, leaves first; only the first hundred.
    """


class Runner(TypedDict):
    """A runner: its entry in the registry and its connections."""

    active_jobs: int
    """The number of jobs assigned to it now."""
    address: "Address"
    """Its account."""
    connections: "list[RunnerConnection]"
    """The current state of its connection to each of them."""
    index: int
    """Its index in the registry and in bitmaps."""
    kinds: list[str]
    """The job kinds it takes: `llm`, `http`, `mcp`, `eth_send`, `custom`."""
    last_heartbeat: int
    """The height of its last on-chain heartbeat, or of its registration."""
    max_concurrent_jobs: int
    """The maximum number of jobs that it takes at a time."""
    mcp_servers: NotRequired[list[str] | None]
    """The servers of `mcp` jobs that it takes; absent: any."""
    models: NotRequired[list[str] | None]
    """The models of `llm` jobs that it takes; absent: any."""
    name: str
    """Its name; its address if this devnet did not start it."""
    presence: NotRequired["RunnerPresence | None"]
    """Its presence with the reason. Absent in recordings of earlier versions."""
    present: bool
    """Whether a draw in the next block would find it present, as far as the chain knows now."""
    price_per_second: "Amount"
    """Its price per second of computing, in wei."""
    pubkey: "PublicKey"
    """Its secp256k1 identity key."""
    registered_at: int
    """The height that registered it."""
    reputation: int
    """Its reputation, 0 to 100; 100 at registration."""
    reputation_history: NotRequired["list[ReputationStep]"]
    """The last changes of its reputation, newest first; empty in lists."""
    stake: "Amount"
    """Its stake in wei."""
    status: "RunnerHealth"
    """Its liveness according to the registry."""
    subset: list[str]
    """The names of the validators that it has to be connected to, in subset order."""
    tee: NotRequired[bool]
    """Whether it is registered as running in a trusted execution environment."""
    unmet: NotRequired["UnmetPresence | None"]
    """The condition that keeps it from being present, if there is one."""


class RunnerConnection(TypedDict):
    """A runner's connection to a validator of its subset."""

    connected: bool
    """Whether that validator holds an authenticated connection."""
    last_end: NotRequired["ConnectionEnd | None"]
    """How and at which height of the validator the last connection there ended; absent when none
    has ended since the validator started, and in lists.
    """
    last_ping: NotRequired[int | None]
    """The height of the last valid ping there; absent before the first."""
    load: NotRequired["ConnectionLoad | None"]
    """The load that the runner last reported to that validator; absent before its first report."""
    locally_present: bool
    """Whether that validator counts the runner as present."""
    unmet: NotRequired["PresenceCondition | None"]
    """The first condition that keeps that validator from doing so; absent when all are met, and
    when the validator does not run.
    """
    validator: str
    """The validator."""
    validator_address: "Address"
    """The validator's account."""
    withdrawn: NotRequired[list[str]]
    """The labels that the runner has withdrawn for now at that validator, as `llm:small`."""


RunnerHealth: TypeAlias = Literal["Healthy", "Unhealthy", "Deregistered"]
"""A runner's liveness according to the registry."""


class RunnerLoad(TypedDict):
    """A runner's capacity for jobs, as it last reported to its validators."""

    accepting_new: bool
    """Whether it takes more; if not, it is not present."""
    active_jobs: int
    """Jobs it works on now."""
    address: "Address"
    """Its account."""
    max_concurrent: int
    """The maximum number of jobs that it takes at a time."""
    name: str
    """Its name."""
    reason: NotRequired[str | None]
    """Why not, as `paused`; absent when it takes more."""
    running: bool
    """Whether it runs."""
    withdrawn: NotRequired[list[str]]
    """The labels that it has withdrawn for now, as `llm:small`."""


class RunnerPresence(TypedDict):
    """A runner's presence as a draw in the next block would read it."""

    for_block: int
    """The next block."""
    halted_ms: NotRequired[int | None]
    """Milliseconds since the newest block was proposed, if the chain has halted; absent otherwise.
    """
    of: NotRequired[int | None]
    """The newest h with P(h) on the chain; absent when there is no P(h) yet. If the next block
    embeds a newer certificate, its draws read that one instead.
    """
    standing: "PresenceStanding"
    """The verdict."""


class RunnerProgress(TypedDict):
    """A runner's report of its progress with a job."""

    detail: NotRequired[str | None]
    """The current activity, in the runner's words; absent when it reports none."""
    height: int
    """The height at that time of the validator that received the report."""
    percent: int
    """The percentage done, from 0 to 100; 0 when the runner cannot tell."""
    runner: str
    """The runner."""


RunnerState: TypeAlias = Literal["connected", "connecting", "stopped"]
"""Whether a runner runs and is connected."""


class RunnerStatus(TypedDict):
    """A runner at a glance."""

    address: "Address"
    """Its account."""
    connected_validators: list[str]
    """The validators that hold an authenticated connection to it."""
    name: str
    """Its name."""
    status: "RunnerState"
    """Whether it runs and is connected."""
    unmet: NotRequired["UnmetPresence | None"]
    """The condition that keeps it from being present, if there is one."""


class SaveRequest(TypedDict):
    """A request to save a snapshot."""

    snapshot: NotRequired[str | None]
    """The snapshot's name (default: the devnet's name and height)."""


class SeedSource(TypedDict):
    """The source of a draw's seed."""

    certificate_of: NotRequired[int | None]
    """The block that the certificate certifies; absent: the seed is made from the parent's hash."""
    digest: NotRequired["Hash | None"]
    """The certificate's input to the seed: a hash over its votes' signatures."""
    rule: str
    """`parent`: the parent block's hash. `certificate`: the newest certificate embedded in the
    parent or in a block before it, or the parent's hash while there was no certificate.
    """


Setting: TypeAlias = int | str
"""The value of a governed parameter."""


class Snapshot(TypedDict):
    """A snapshot: the whole state of a devnet, as it was between two blocks."""

    bytes: int
    """The total size of its files, in bytes."""
    chain_id: "ChainId"
    """The devnet's chain id."""
    created_at: "Time"
    """When it was made."""
    devnet: str
    """The devnet's name."""
    files: int
    """The number of its files."""
    format: int
    """The version of its layout."""
    halted_ms: NotRequired[int | None]
    """How long the running chain paused for the snapshot, in milliseconds from the last block
    before it to the first block after it; absent when the devnet was stopped, and when no block
    followed for a while.
    """
    hash: "Hash"
    """That block's hash."""
    height: int
    """The newest block in it."""
    snapshot: str
    """Its name."""
    version: str
    """The version of the program that made it."""


class SpeculationEvent(TypedDict):
    """An action of a component of speculation."""

    at: "Time"
    """When it happened."""
    data: dict[str, Any]
    """The event's own fields, amounts in wei as text."""
    kind: str
    """The component and its action, as `proof:ready`. `stream:missed` replaces earlier events that
    are no longer kept, and carries the number of the last of them.
    """
    pipeline: NotRequired[int | None]
    """The number of the pipeline that it is about; absent when it is about no pipeline, or about a
    forgotten one.
    """
    seq: int
    """Its number: numbers grow in the order of events, also across restarts of the devnet."""
    task: NotRequired[str | None]
    """The task's name in the file; absent when it is about no task, or about a forgotten one."""
    task_id: NotRequired["Hash | None"]
    """The task's identifier on the chain; absent when it is about no task."""


class SpeculationEventPage(TypedDict):
    """A run of events of components, oldest first."""

    events: "list[SpeculationEvent]"
    """The events."""
    more: bool
    """Whether more events are available already."""
    next: int
    """The number to continue from."""


class SpeculationOption(TypedDict):
    """An option of speculation."""

    explicit: bool
    """Whether it was set individually, so that no preset changes it."""
    option: str
    """Its name, as `stake.minStake`."""
    range: str
    """The allowed values."""
    value: str
    """Its value."""


class SpeculationStatus(TypedDict):
    """The state of speculation."""

    agent: "Address"
    """The account that runs the pipelines."""
    branches: int
    """The number of live tips."""
    breaker: str
    """The circuit breaker: `closed`, `open` or `half_open`."""
    breaker_opened: NotRequired["BreakerOpened | None"]
    """The cause of its opening, and when it lets a task through; absent while it is closed."""
    chain_away: NotRequired["ChainAway | None"]
    """The state of the chain while it cannot be reached; absent while it can."""
    completed: "list[PipelineSummary]"
    """The last completed pipelines, newest first, at most ten, with their wall time next to the
    synchronous pipeline's.
    """
    enabled: bool
    """Whether tasks may run before their ancestors are confirmed."""
    generator: str
    """The generator of proofs: `groth16`, or `mock`, which proves nothing."""
    max_depth_current: int
    """Depth of the deepest live task."""
    memory_bytes: int
    """Memory in use, in bytes, by the agent's books."""
    mode: str
    """The preset: `conservative`, `balanced`, `aggressive` or `custom`."""
    pipelines_done: int
    """Pipelines that have ended, whatever their status, and are still known."""
    pipelines_running: int
    """Pipelines that run."""
    policy: str
    """The policy of rollbacks: `cascade`, `selective` or `checkpoint`."""
    proofs_in_flight: int
    """Proofs in flight."""
    proofs_proving: int
    """Proofs that are being made."""
    proofs_queued: int
    """Proofs that no prover has started on."""
    proofs_ready: int
    """Proofs that are sent as soon as there is a slot, or were lost and are sent again."""
    proofs_waiting: int
    """Proofs that wait until every ancestor is confirmed."""
    recent_rollbacks: int
    """The number of the last resolved tasks that were rolled back."""
    recent_tasks: int
    """The number of the last resolved tasks that are counted."""
    rollbacks: dict[str, int]
    """Rollbacks by reason."""
    running: NotRequired["list[PipelineSummary]"]
    """The running pipelines with their proofs by stage, newest first, at most ten."""
    stake_available: "Amount"
    """The deposited stake without slashed amounts, in wei."""
    stake_locked: "Amount"
    """The bonds of the live tasks, in wei."""
    stake_slashed: "Amount"
    """The total that the chain has slashed, in wei."""
    tasks_confirmed: int
    """Tasks confirmed."""
    tasks_live: int
    """The number of live tasks."""
    tasks_rejected: dict[str, int]
    """Refusals by reason; a waiting task counts again when its reason changes."""
    tasks_rolled_back: int
    """Tasks undone."""
    tasks_scheduled: int
    """Tasks accepted since the chain's first block."""
    tasks_waiting: int
    """Tasks that wait to be accepted."""


class SpeculativeCommitment(TypedDict):
    """A commitment to a task's output."""

    bond: "Amount"
    """The task's bond."""
    constraint_hash: "Hash"
    """The hash of the output."""
    created_at: "Time"
    """When it was made."""
    depth: int
    """The depth at which it was made."""
    expires_at: "Time"
    """When it expires, unless it is confirmed by then."""
    output_commitment: "Hash"
    """The commitment."""
    pipeline: int
    """The pipeline's number."""
    status: str
    """Its status: `created`, `proof_generated`, `submitted`, `confirmed`, `failed`, `expired` or
    `rolled_back`.
    """
    task: str
    """The task's name in the file."""
    task_id: "Hash"
    """The task's identifier on the chain."""


class SpeculativeProof(TypedDict):
    """A proof that is being made or has been made."""

    generator: str
    """Its generator: `groth16`, or `mock`, which proves nothing."""
    pipeline: int
    """The pipeline's number."""
    status: str
    """Its stage: `held`, `queued`, `proving`, `waiting`, `ready`, `back_off`, `submitting` or
    `confirmed`.
    """
    submissions: int
    """The number of times that it was sent to the chain in this attempt."""
    task: str
    """The task's name in the file."""
    task_id: "Hash"
    """The task's identifier on the chain."""
    took_ms: NotRequired[int | None]
    """The time to make it, including `proof.latency`, in milliseconds; absent before it is made."""
    waits_for: list[str]
    """The names of unconfirmed ancestors that it waits for; only the first few."""


class SpeculativeTask(TypedDict):
    """A task of a pipeline."""

    attempt: int
    """The number of the attempt, from 1; 0 before the first."""
    bond: NotRequired["Amount | None"]
    """The amount locked for it at scheduling, in wei; absent before."""
    claim_expires_at: NotRequired["Time | None"]
    """When its claim expires; absent before it is accepted."""
    depends_on: "list[TaskParent]"
    """The tasks that it depends on."""
    depth: NotRequired[int | None]
    """The current number of unconfirmed tasks above it on the longest path; absent before it is
    accepted.
    """
    fault: NotRequired[str | None]
    """The fault that the file injects into its first attempt."""
    kind: str
    """The kind of its work: `custom`, `http`, `llm`, `mcp` or `eth_send`."""
    output_bytes: NotRequired[int | None]
    """The size of its output in bytes."""
    output_commitment: NotRequired["Hash | None"]
    """The commitment to its output; absent before there is one."""
    pipeline: int
    """The pipeline's number."""
    reason: NotRequired[str | None]
    """The reason why it waits or why it failed."""
    runner: NotRequired[str | None]
    """The runner that works on it or produced its output."""
    status: "TaskStatus"
    """Its status."""
    task: str
    """Its name in the file."""
    task_id: "Hash"
    """Its identifier on the chain."""
    times: "TaskTimes"
    """The times of its stages."""


class StateChange(TypedDict):
    """A key of an actor's store before and after a call."""

    actor: "Address"
    """The actor."""
    after: NotRequired[Any]
    """Its value after; absent: none."""
    before: NotRequired[Any]
    """Its value before; absent: none."""
    key: str
    """The key."""


class StateEntry(TypedDict):
    """An entry in an actor's store."""

    key: str
    """The key."""
    value: Any
    """The value."""
    value_bytes: NotRequired["Bytes | None"]
    """The value's bytes, if the actor is in Python."""


class StateProof(TypedDict):
    """A proof of the value that a state has under a key, or that it has none."""

    header_hash: "Hash"
    """That block's hash."""
    header_height: int
    """The block whose header names that root, and whose certificate is in the proof."""
    height: int
    """The block that produced the state."""
    key: str
    """The key in full; empty for `presence` and `validators`."""
    kind: str
    """The kind of entry: `account`, `actor`, `stored`, `job`, `runner`, `task`, `presence`,
    `timer`, `timers` or `validators`.
    """
    proof: "Bytes"
    """The proof, at most 2 MiB, in the format of docs/proofs.md."""
    state_root: "Hash"
    """The state's root."""


class Status(TypedDict):
    """The devnet at a glance."""

    chain_id: NotRequired["ChainId | None"]
    """The chain id; absent when it does not run."""
    died: NotRequired[str | None]
    """How its process ended, if it was killed; absent otherwise."""
    faults: "list[Fault]"
    """The injected faults, oldest first."""
    head: NotRequired["Head | None"]
    """The newest finalized and executed block; when it does not run, the newest that is stored."""
    kept_from: NotRequired[int | None]
    """The oldest block that every running validator keeps; absent when none runs."""
    name: str
    """The devnet's name."""
    pid: NotRequired[int | None]
    """The process that runs it; absent when it does not run."""
    ready: bool
    """Whether every validator has finalized a block and every runner is connected to its subset."""
    runners: "list[RunnerStatus]"
    """The runners, in registry order."""
    running: bool
    """Whether it runs; always true in its own answer."""
    started_at: NotRequired["Time | None"]
    """The time at which it was started; absent when it does not run."""
    supply: NotRequired["Supply | None"]
    """The total supply and its parts; absent when it does not run."""
    validators: "list[ValidatorStatus]"
    """The validators, in the set's order."""


class Stopping(TypedDict):
    """The devnet has begun to stop."""

    pid: int
    """The process to wait for."""


String: TypeAlias = str


class Supply(TypedDict):
    """The total supply in wei, by where it is held. The parts always add up to the same total."""

    balances: "Amount"
    """The sum of all balances."""
    bonds: "Amount"
    """Locked under commitments to tasks' outputs."""
    burned: "Amount"
    """Burned as basefees, or slashed."""
    escrow: "Amount"
    """Escrow of jobs and tasks that have not ended."""
    stakes: "Amount"
    """Locked by runners."""
    total: "Amount"
    """The sum of the parts."""


class TaskDetail(SpeculativeTask):
    """A task with its output."""

    output: NotRequired["Bytes | None"]
    """Its output; absent before there is one, and when it was undone."""
    output_text: NotRequired[str | None]
    """The output as text, if it is UTF-8."""
    proof: NotRequired["Bytes | None"]
    """Its proof, 388 bytes; absent before it is made, and once the task is confirmed or undone."""
    transactions: "list[TaskTransaction]"
    """The known transactions sent for it, oldest first."""


class TaskEntry(TypedDict):
    """A task of a pipeline. It has either `command` or `job`."""

    attempts: NotRequired[int]
    """The maximum number of attempts, counting failures and rollbacks (default 1)."""
    checkpoint: NotRequired[bool]
    """Whether the policy `checkpoint` keeps its output after a rollback."""
    claim_ms: NotRequired[int | None]
    """Duration of the agent's claim in ms: more than `claimBufferMs`, up to [`MAX_SPAN_MS`]
    (default 600,000, or twice `claimBufferMs`).
    """
    command: NotRequired[list[str]]
    """A program and its arguments."""
    depends_on: NotRequired["list[Dependency]"]
    """The tasks that it depends on."""
    expect: NotRequired[str | None]
    """The required output, as text; the chain then accepts no proof of another output."""
    fault: NotRequired["FaultEntry | None"]
    """A fault to inject into its first attempt."""
    id: str
    """Its name: letters, digits, `-`, `_` and `.`."""
    job: NotRequired[dict[str, Any]]
    """Any job in the format of `job submit -f`; only its `work` and `bounds` are used."""
    reward: NotRequired[int]
    """The creator's payment on completion, in wei, from escrow (default 0)."""


class TaskParent(TypedDict):
    """A dependency of a task."""

    order_only: bool
    """Whether the dependency is only an order: the task does not read its output."""
    task: str
    """The task's name in the file."""


TaskStatus: TypeAlias = Literal[
    "waiting",
    "running",
    "proving",
    "proved",
    "submitted",
    "confirmed",
    "failed",
    "rolled_back",
    "cancelled",
]
"""The status of a task of a pipeline."""


class TaskTimes(TypedDict):
    """The times of a task's stages in its last attempt, in milliseconds since its pipeline was
    accepted.
    """

    confirmed_ms: NotRequired[int | None]
    """The chain confirmed it."""
    ended_ms: NotRequired[int | None]
    """It failed, was rolled back or cancelled."""
    executed_ms: NotRequired[int | None]
    """Its output was ready."""
    proved_ms: NotRequired[int | None]
    """Its proof was ready."""
    scheduled_ms: NotRequired[int | None]
    """It was accepted and its bond locked."""
    submitted_ms: NotRequired[int | None]
    """Its proof was sent to the chain."""


class TaskTransaction(TypedDict):
    """A transaction that the agent sent for a task."""

    kind: str
    """Its kind: `create_task`, `claim_task`, `create_commitment`, `complete_task_private` or
    `resolve_commitment`.
    """
    transaction: "Hash"
    """Its hash."""


class TasksCancelled(TypedDict):
    """Tasks that were cancelled."""

    tasks: int
    """The number of tasks cancelled, including those that depend on them."""


class TasksRetried(TypedDict):
    """Tasks that are being retried."""

    pipeline: int
    """The pipeline's number."""
    tasks: list[str]
    """Their names, parents first."""


Time: TypeAlias = str
"""a time: RFC 3339 in UTC"""


class Timer(TypedDict):
    """A timer with its history."""

    actor: "Address"
    """Its owner, whose handler it calls."""
    actor_name: NotRequired[str | None]
    """The owner's name, where the devnet knows one."""
    bid: NotRequired["TimerBid | None"]
    """The agent's last answer, which a fire used; absent until the agent is asked."""
    cell_limit: int
    """Cells that a fire may use."""
    cells: NotRequired[int | None]
    """Cells paid for; absent when it did not fire."""
    charged: NotRequired["TimerCharge | None"]
    """The use of the payer's money; absent when it did not fire."""
    cycles: NotRequired[int | None]
    """Cycles paid for; absent when it did not fire."""
    deferrals: "list[Deferral]"
    """The reasons why it did not fire in blocks in which it was due, oldest first: for the last
    10,000 such blocks, and at most the newest 1,000 runs.
    """
    deferred_blocks: int
    """The number of blocks in which it was due and did not fire."""
    ended_at: NotRequired[int | None]
    """The height at which it ended, whether or not it fired."""
    error: NotRequired[str | None]
    """Why the handler failed."""
    events: "list[Event]"
    """Events about it and from its fire, oldest first: the newest 1,000."""
    expires_at: int
    """The last height at which it may fire."""
    fee_payer: "Address"
    """The account or actor that pays."""
    fired_at: NotRequired[int | None]
    """The height at which it fired."""
    gas_limit: int
    """Cycles that a fire may use."""
    gba: NotRequired["Address | None"]
    """The gas bidding agent that is asked for a bid when it is due."""
    handler: str
    """The handler."""
    height: int
    """The height at which it is due."""
    log: list[str]
    """Lines logged and printed during the fire."""
    max_cost: NotRequired["Amount | None"]
    """The most wei that a fire costs at the prices of the next block; absent once it has ended, and
    while its cap does not cover the price.
    """
    max_fee_per_cycle: "Amount"
    """Maximum wei per cycle."""
    max_priority_fee_per_cycle: "Amount"
    """Maximum wei per cycle for the proposer."""
    name: NotRequired[str | None]
    """Its name, where it was given one."""
    payer_balance: "Amount"
    """The payer's balance in wei."""
    payload: "Bytes"
    """The handler's argument."""
    payload_text: NotRequired[str | None]
    """The payload as text, when it is UTF-8."""
    promised: NotRequired["Amount | None"]
    """The most wei that the fire may ever cost its payer; absent when the actor itself pays,
    because then only the prices of the fire's block bound the cost.
    """
    result: NotRequired[Any]
    """The handler's return value; absent when it did not fire, failed or returned nothing."""
    result_bytes: NotRequired["Bytes | None"]
    """The same as bytes, if the actor is in Python and returned any."""
    scheduled_at: int
    """The height at which it was scheduled."""
    status: "TimerStatus"
    """Its status."""
    tier: NotRequired["TimerTier | None"]
    """The queue's tier that holds it; absent once it has ended."""
    timer_id: "Hash"
    """Its id."""


class TimerBid(TypedDict):
    """The answer of a gas bidding agent."""

    failed: bool
    """Whether the agent failed, so that this is the default bid of that block."""
    max_fee_per_cycle: "Amount"
    """Maximum wei per cycle."""
    max_priority_fee_per_cycle: "Amount"
    """Maximum wei per cycle for the proposer."""


class TimerBucket(TypedDict):
    """A bucket of the calendar queue."""

    at: int
    """The height or the epoch of the bucket."""
    timers: int
    """The number of timers in it."""


class TimerCharge(TypedDict):
    """The use of the money set aside for a fire, in wei."""

    burned_cycle: "Amount"
    """The cycle basefee, burned."""
    burned_lane: "Amount"
    """The lane basefee, burned."""
    cells: "Amount"
    """The cell basefee, burned."""
    refunded: "Amount"
    """The unused rest, returned to the payer."""
    tip: "Amount"
    """The priority, paid to the proposer."""


class TimerQueue(TypedDict):
    """The calendar queue, tier by tier."""

    carry_over: int
    """Timers that are due and carried over."""
    epoch: int
    """The epoch of that block."""
    epoch_blocks: int
    """Blocks per epoch."""
    epochs: "list[TimerBucket]"
    """The epoch queue: epochs with timers, ascending."""
    height: int
    """The block after which this is the state."""
    overflow: int
    """Timers in the overflow tree."""
    ring: "list[TimerBucket]"
    """The block ring: heights with timers, ascending."""
    root: "Hash"
    """The queue's hash, part of the state root."""
    timers: int
    """The number of all timers."""


class TimerQuote(TypedDict):
    """The bid that a timer's agent would make in the next block."""

    actor: "Address"
    """Its owner, who pays for questions."""
    bid: "TimerBid"
    """The bid that counts."""
    context: "GbaContext"
    """The input of the agent."""
    cost: "Amount"
    """The price that the owner would pay for the question, in wei."""
    cycle_price: "Amount"
    """The price of a fire's cycle in that block before priority, in wei."""
    cycles: int
    """Cycles that the answer used."""
    effective_tip: NotRequired["Amount | None"]
    """The priority that the timer would pay the proposer with that bid, in wei per cycle; absent
    when the bid's cap is below the price.
    """
    error: NotRequired[str | None]
    """The error of an agent that gave no bid; then the default bid counts."""
    gba: "Address"
    """The agent."""
    height: int
    """The next block, in which it would be asked."""
    max_cost: "Amount"
    """The maximum cost of the fire with that bid, in wei."""
    next: "DueFate"
    """Its fate in that block if it is due in it."""
    not_asked: NotRequired[str | None]
    """The reason why that block does not ask the agent; absent when it does, at its owner's turn.
    """
    outlook: str
    """Its fate in words."""
    paid_cycles: int
    """Cycles that the owner would pay for, at least 1,000."""
    policy: str
    """That block's policy."""
    rank: NotRequired[int | None]
    """Its turn in that block if it is due in it, from 1; absent when it would not be ranked."""
    ranked: int
    """The number of timers that would be ranked in that block, including this one."""
    success: bool
    """Whether the agent gave a bid."""
    timer_id: "Hash"
    """The timer."""
    weight_per_mille: NotRequired[int | None]
    """Its actor's weight, per mille; absent under `fifo`."""


TimerStatus: TypeAlias = Literal[
    "scheduled",
    "due",
    "fired",
    "failed",
    "expired",
    "cancelled",
    "insufficient_funds",
]
"""The status of a timer."""


class TimerSummary(TypedDict):
    """A timer in a list."""

    actor: "Address"
    """Its owner, whose handler it calls."""
    actor_name: NotRequired[str | None]
    """The owner's name, where the devnet knows one."""
    cell_limit: int
    """Cells that a fire may use."""
    expires_at: int
    """The last height at which it may fire."""
    fee_payer: "Address"
    """The account or actor that pays."""
    fired_at: NotRequired[int | None]
    """The height at which it fired."""
    gas_limit: int
    """Cycles that a fire may use."""
    handler: str
    """The handler."""
    height: int
    """The height at which it is due."""
    max_fee_per_cycle: "Amount"
    """Maximum wei per cycle."""
    max_priority_fee_per_cycle: "Amount"
    """Maximum wei per cycle for the proposer."""
    name: NotRequired[str | None]
    """Its name, where it was given one."""
    status: "TimerStatus"
    """Its status."""
    tier: NotRequired["TimerTier | None"]
    """The queue's tier that holds it; absent once it has ended."""
    timer_id: "Hash"
    """Its id."""


TimerTier: TypeAlias = Literal["ring", "epoch", "overflow", "carry_over"]
"""The tier of the calendar queue that holds a timer."""


class TracedCall(TypedDict):
    """A call in a dry run."""

    actor: "Address"
    """The actor."""
    by: NotRequired[int | None]
    """The index of the call that made it; absent for the first one."""
    changes: "list[StateChange]"
    """The changes to the actor's own store; empty if the call failed, or ran inside one that
    failed. A failure of the whole transaction undoes all of them.
    """
    error: NotRequired[str | None]
    """Why it failed."""
    handler: str
    """The handler."""
    inside: bool
    """Whether it ran inside that call; otherwise it was a message, delivered afterwards."""
    payload: Any
    """The handler's argument; of a long one, the beginning."""
    profile: NotRequired["CallProfile | None"]
    """What each of its lines spent, if the request asks for it; absent for an actor in Python, and
    for calls after those with 16,384 entries in all.
    """
    result: NotRequired[Any]
    """What it returned; of a long value, the beginning. Absent if it failed."""
    sender: "Address"
    """The caller."""
    usage: "Usage"
    """Its usage, with that of the calls inside it."""
    value: "Amount"
    """Wei transferred with the call."""


class Transaction(TypedDict):
    """A transaction and its receipt."""

    acted_as: NotRequired["Address | None"]
    """The account in whose name the sender, a system deployer, acted; absent: its own, or pending.
    """
    actor: NotRequired["ActorReceipt | None"]
    """The work of actors; absent while pending, and when it deployed and called no actor."""
    error: NotRequired[str | None]
    """Why it failed, was skipped or dropped: the error's name."""
    events: "list[Event]"
    """The events it caused."""
    fee: NotRequired["Fee | None"]
    """The fee that it paid; absent while pending and when skipped."""
    hash: "Hash"
    """Its hash."""
    height: NotRequired[int | None]
    """The block that holds it; absent while pending."""
    index: NotRequired[int | None]
    """Its index in the block; absent while pending."""
    kind: str
    """The kind of its payload, as `transfer`."""
    message: NotRequired[str | None]
    """The failure in words."""
    nonce: int
    """The number of the sender's transactions before it."""
    payload: dict[str, Any]
    """The payload's fields, amounts and byte strings as text."""
    sender: "Address"
    """The account that signed it."""
    sender_name: NotRequired[str | None]
    """The sender's name, where the devnet knows one."""
    status: "TransactionStatus"
    """Its status."""
    timer_allowance: NotRequired["Amount | None"]
    """The most wei that timers scheduled under it may ever take from the sender; absent: nothing.
    """


class TransactionAccepted(TypedDict):
    """The mempool took the transaction."""

    hash: "Hash"
    """The transaction's hash."""
    known: bool
    """Whether it had been accepted before. If it was signed just now, another process has used the
    same nonce for the same transaction, which takes effect only once.
    """


class TransactionRequest(TypedDict):
    """A signed transaction for the mempool."""

    transaction: "Bytes"
    """The signed transaction in its canonical encoding."""


TransactionStatus: TypeAlias = Literal["pending", "success", "failed", "skipped", "dropped"]
"""The status of a transaction."""


class UnderRule(TypedDict):
    """The result that a draw would have had under another rule of presence."""

    committee: list[str]
    """The runners that would have been drawn, in draw order; empty: the job would have waited."""
    in_force: bool
    """Whether the draw was made under this rule."""
    present: list[str]
    """The registered runners that would have been present, in registry order."""
    rule: str
    """`committee`, `quorum` or `subset`: the threshold rule. `shadow`: no runner is dropped for
    being absent, as in that phase; the other filters are those of the draw's phase.
    """
    same: bool
    """Whether these are the runners that were drawn."""


class UnmetPresence(TypedDict):
    """Why a runner is not present."""

    condition: "PresenceCondition"
    """The condition that it does not meet."""
    detail: str
    """The reason in words, with the figures and the validators."""


class UpgradeRequest(TypedDict):
    """Asks for another program for a validator's own process."""

    binary: str
    """The absolute path of the program, a `cowboyctl`."""


class Usage(TypedDict):
    """The usage of actors, without the intrinsic part of a transaction."""

    by_cause: "CyclesByCause"
    """The cycles by cause."""
    cells: int
    """Bytes that the chain keeps."""
    cycles: int
    """The total number of cycles."""


class Validator(TypedDict):
    """A validator and its connections."""

    address: "Address"
    """Its account."""
    connected_runners: list[str]
    """The runners it holds an authenticated connection to."""
    consensus_key: "Bytes"
    """Its ed25519 key, which other validators know it by."""
    height: int
    """Its newest finalized and executed block; the last known one when it is stopped."""
    index: NotRequired[int | None]
    """Its index in the committee of the next block, as in certificates; absent when it is not in
    the committee and only follows the chain.
    """
    name: str
    """Its name."""
    p2p: NotRequired[str | None]
    """The address for other validators; absent when it is stopped."""
    pid: NotRequired[int | None]
    """Its own process; absent when it runs in the devnet's."""
    pubkey: "PublicKey"
    """Its secp256k1 identity key, which runners know it by."""
    quic: NotRequired[str | None]
    """The QUIC address for runners, as `127.0.0.1:29001`; absent when it is stopped."""
    reason: NotRequired[str | None]
    """The reason why it is paused, or why it died; absent otherwise."""
    status: "ValidatorState"
    """Whether it runs."""
    subset_of: list[str]
    """The runners that have it in their subset."""
    version: NotRequired[str | None]
    """The version of the program of its own process."""


ValidatorState: TypeAlias = Literal[
    "starting",
    "running",
    "catching_up",
    "paused",
    "stopped",
    "died",
]
"""Whether a validator runs."""


class ValidatorStatus(TypedDict):
    """A validator at a glance."""

    address: "Address"
    """Its account."""
    height: int
    """Its newest finalized and executed block; the last known one when it is stopped."""
    index: NotRequired[int | None]
    """Its index in the committee of the next block, as in certificates; absent when it is not in
    the committee, or the devnet does not run.
    """
    name: str
    """Its name."""
    reason: NotRequired[str | None]
    """The reason why it is paused, or why it died; absent otherwise."""
    status: "ValidatorState"
    """Whether it runs."""


Vec: TypeAlias = list[dict[str, Any]]


class Vote(TypedDict):
    """One validator's finalization vote."""

    bit_length: int
    """The length of its bitmap in bits: the registry's length as the voter knew it."""
    bytes: "Bytes"
    """The bitmap, least significant bit first, padding zero."""
    index: int
    """The validator's index in the set."""
    present: list[str]
    """The runners whose bit is set."""
    validator: str
    """The validator."""


class VoteEvidence(TypedDict):
    """One validator's vote, with what it signed."""

    bit_length: int
    """The length of its bitmap in bits."""
    bitmap: "Bytes"
    """The runners that it saw, least significant bit first, padding zero."""
    index: int
    """The validator's index among the epoch's validators, in ascending order of their keys."""
    key: NotRequired["Bytes | None"]
    """The validator's Ed25519 key, 32 bytes; absent when the epoch has no such validator."""
    signature: "Bytes"
    """Its Ed25519 signature, 64 bytes."""


class Votes(TypedDict):
    """The votes of a finalization certificate."""

    embedded_in: int
    """The block that embeds the certificate."""
    height: int
    """The block that the votes are on."""
    quorum: int
    """The number of votes in a certificate."""
    validators: int
    """The validators in the set."""
    votes: "list[Vote]"
    """The votes, in the set's order."""


class WaitingContinuation(TypedDict):
    """A continuation of an actor in Python that waits for a job."""

    cid: "Bytes"
    """Its id. The store has its record under `__continuation:` and the id."""
    deadline: int
    """The height at which the job's current attempt ends."""
    handler: str
    """The handler that the job's end calls."""
    job_id: "Hash"
    """The job."""
    submitted_at: int
    """The height that recorded the job."""


Wanted: TypeAlias = Literal["result", "commitment", "reveal", "nothing"]
"""The next step that the chain expects from a runner with an assigned job."""


class Withdrawal(TypedDict):
    """The abilities that a runner has withdrawn for now."""

    labels: list[str]
    """The labels of these abilities, as `llm:small`."""
    runner: str
    """The runner."""

//! Speculative execution: tasks run before their ancestors' proofs are confirmed on the chain,
//! proofs are submitted in order of dependency, and work that was based on a failed proof is undone
//! (spec speculation.md; AgenC's design document, §§ 4 to 9, 11, 12).
//!
//! A task is scheduled with the tasks it depends on, executed, proved, submitted and confirmed:
//!
//! ```text
//!  schedule        executed          proved         Submit         answer, confirm
//!     │               │                │              │                  │
//!     ▼   pending     ▼   proving      ▼   waiting    ▼   submitting     ▼   confirmed
//!     ├───────────────┼────────────────┼──────────────┼──────────────────┤
//!     └── bond locked └── commitment: its TTL runs    └── every ancestor is confirmed
//! ```
//!
//! * On a request: the task is refused by the first rule that it breaks, and nothing changes
//!   ([`Reason`]); or its bond is locked, at its price at that moment.
//! * On an output: a commitment to it enters the ledger, and its proof is requested. The proof
//!   waits in a queue until a prover begins; its timeout counts from then on.
//! * On a proof: it waits until every ancestor is confirmed. Ready proofs are submitted by the
//!   depth at which they were queued, then in order; a free slot is used at once.
//! * On a confirmation: the bond is released, and the depth of the tasks below falls. A
//!   confirmation that arrives before its parent's is held until that arrives.
//! * On the loss of the chain: nothing expires and nothing is submitted until it is back; after ten
//!   tries to reach it no task is accepted ([`away`]).
//! * On a failure, an expiry or a timeout: rollbacks run one at a time, leaves first. The task that
//!   failed loses its reason's share of its own bond, all others get theirs back.
//! * A task that failed or was rolled back may be scheduled again, as a new attempt. An output that
//!   a checkpoint kept is reused only if the new attempt reads the same outputs.
//! * After too many failures the [`Breaker`] opens: tasks with unconfirmed ancestors are refused
//!   until it lets one through again, whose outcome decides. Running tasks may finish.
//!
//! [`Speculation`] is the whole machine, driven by calls with the time in milliseconds, drained by
//! [`Speculation::poll_output`]; its docs are the contract. No function recurses over the graph.
//!
//! | file | subject |
//! |---|---|
//! | [`config`] | every option, its range, the presets |
//! | [`table`] | records by dense index |
//! | [`graph`] | tasks, their dependencies, their depths |
//! | [`walk`] | ancestors, descendants, orders |
//! | [`ledger`] | commitments, by task and by output |
//! | [`deferral`] | proofs, until they may be submitted |
//! | [`stake`] | the available, locked and slashed stake |
//! | [`bonds`] | the bonds that a chain requires, and the cost of failures |
//! | [`breaker`] | the circuit breaker |
//! | [`away`] | the chain while it cannot be reached |
//! | [`reason`] | why tasks are refused, and why they are undone |
//! | [`scheduler`] | which tasks are accepted |
//! | [`rollback`] | how tasks are undone |
//! | `deadlines` | when the next deadline passes, and what happens then |
//! | `settle` | the consequences of a call: confirmations, requests for proofs, free slots |
//! | [`engine`] | the calls that drive all of these as one machine |
//! | [`output`] | what the machine tells its driver |
//! | [`view`] | its tasks, counts and current values |
//! | [`event`] | events, as they happen |
//! | [`snapshot`] | the machine as bytes |

pub mod away;
pub mod bonds;
pub mod breaker;
pub mod config;
mod deadlines;
pub mod deferral;
pub mod engine;
pub mod event;
pub mod graph;
pub mod ledger;
pub mod output;
pub mod reason;
pub mod rollback;
pub mod scheduler;
mod settle;
pub mod snapshot;
pub mod stake;
mod table;
#[cfg(test)]
mod tests;
pub mod view;
mod walk;

pub use bonds::{Bonds, Slashing};
pub use breaker::{Breaker, BreakerState, Override};
pub use config::{Config, ConfigError, Mode, RollbackPolicy};
pub use deferral::ProofStatus;
pub use event::{Event, SpeculationEventKind};
pub use graph::{DependencyStatus, Graph, GraphError, ParentLink};
pub use ledger::{CommitmentStatus, Ledger, Opening, OutputCommitment};
pub use output::{
    Answered, CompletionError, ConfirmError, Confirmation, EngineOutput, FailError, Plan,
    StaleResult, SubmissionResult, Summary,
};
pub use reason::{Reason, RollbackReason};
pub use scheduler::{Refused, RunRequest, Scheduled};
pub use snapshot::SnapshotError;
pub use stake::Stake;
pub use view::{Counters, Gauges, TaskView};

pub use crate::proof::{Generator, PROOF_BYTES};

use crate::primitives::Hash;
use away::Away;
use deadlines::TaskTerms;
use deferral::Deferral;
use ledger::Checkpoint;
use std::collections::{BTreeSet, VecDeque};
use table::{Table, TaskIndex};

/// A task's identity, the same as on the chain.
pub type TaskId = Hash;

/// Speculative execution of one agent's tasks.
///
/// Every call that may change something takes the time in milliseconds, from any origin; a time
/// before the latest one counts as the latest. Everything that is due by then happens first. After
/// each call:
///
/// * drain [`poll_output`](Self::poll_output) until it is empty, and follow the outputs;
/// * set a timer for [`next_deadline`](Self::next_deadline) and call [`advance`](Self::advance)
///   then. Deadlines that pass at the same time are handled roots first, so a late call undoes the
///   same tasks.
///
/// A refused call changes nothing but the time. Take a snapshot only when no output is pending:
/// outputs are not part of it, except that proofs in flight are handed out again.
#[derive(Clone, Debug)]
pub struct Speculation {
    config: Config,
    now: u64,
    graph: Graph,
    ledger: Ledger,
    deferral: Deferral,
    terms: Table<TaskTerms>,
    stake: Stake,
    bonds: Bonds,
    breaker: Breaker,
    away: Option<Away>,
    cooldown_until: u64,
    /// Every task's earliest deadline.
    deadlines: BTreeSet<(u64, TaskIndex)>,
    triggers: VecDeque<(TaskId, RollbackReason)>,
    checkpoints: VecDeque<Checkpoint>,
    history: VecDeque<Summary>,
    counters: Counters,
    pruned_at: u64,
    /// Bytes that the driver uses for the machine's tasks.
    elsewhere: u64,
    outputs: VecDeque<EngineOutput>,
    /// Events to be taken, if they are enabled.
    events: Option<VecDeque<Event>>,
}

impl Speculation {
    pub fn new(config: Config, now: u64) -> Self {
        Self {
            config,
            now,
            graph: Graph::default(),
            ledger: Ledger::default(),
            deferral: Deferral::default(),
            terms: Table::default(),
            stake: Stake::default(),
            bonds: Bonds::UNBOUND,
            breaker: Breaker::default(),
            away: None,
            cooldown_until: 0,
            deadlines: BTreeSet::new(),
            triggers: VecDeque::new(),
            checkpoints: VecDeque::new(),
            history: VecDeque::new(),
            counters: Counters::default(),
            pruned_at: now,
            elsewhere: 0,
            outputs: VecDeque::new(),
            events: None,
        }
    }
}

//! A validator in the API, whether or not it runs.

use crate::{
    api::error::ApiError,
    chain::{ledger::Ledger, mempool::Mempool},
    types::{ConnectedRunner, ConnectionEnd, Fault},
    validator::{gateway::Submission, journal::Journal},
};
use cowboy_engine::{
    chain::{GenesisValidator, SignedTransaction, State},
    primitives::{Address, Hash, Height},
};
use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::sync::watch;

/// A runner's last report of its progress with a job, over its connection to a validator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedProgress {
    pub runner: Address,
    /// The percentage done, from 0 to 100.
    pub percent: u16,
    pub detail: Option<String>,
    pub height: Height,
}

/// A dispatch of a job to a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedDispatch {
    pub runner: Address,
    pub assigned_at: Height,
    /// As [`JobDispatch::outcome`](crate::types::JobDispatch).
    pub outcome: String,
    pub answered_ms: Option<u64>,
    pub started_ms: Option<u64>,
    pub done_ms: Option<u64>,
}

/// What the API asks of a running validator beyond its chain: one in this process, or one in a
/// process of its own. Its answers are about the time since it started. May block.
pub trait NodeAccess: Send + Sync {
    fn links(&self) -> Vec<ConnectedRunner>;

    /// The last progress reports of its runners about an open job.
    fn progress(&self, job_id: &Hash) -> Vec<ReportedProgress>;

    /// Its dispatches of a job, oldest first.
    fn dispatches(&self, job_id: &Hash) -> Vec<ObservedDispatch>;

    /// The end of its last connection with a runner.
    fn last_end(&self, runner: &Address) -> Option<ConnectionEnd>;

    /// The journal of its runners, and the number of connections that wait for their handshake;
    /// `None` if it runs in another process, which has metrics of its own.
    fn journal(&self) -> Option<(Journal, usize)>;

    /// Why its own process decides nothing for now, if it has one.
    fn paused(&self) -> Option<String> {
        None
    }

    /// The metrics of its process, if it has one of its own.
    fn metrics(&self) -> Option<String> {
        None
    }

    /// The faults that it carries out and what they have done, if it runs in another process.
    fn faults(&self) -> Vec<Fault> {
        Vec::new()
    }

    /// Lifts the pace of its proposals, if it runs in another process.
    fn lift(&self, _blocks: u64, _within: Duration) {}

    /// Has transactions get blocks at once or no longer, if it runs in another process.
    fn automine(&self, _on: bool) {}

    /// Takes what a runner delivers without a connection.
    fn hand_in(&self, submission: Submission) -> Result<(), ApiError>;

    /// Submits a transaction to it and to no other, and returns whether it is new; `None` if the
    /// mempool of [`Running`] does that.
    fn submit(&self, transaction: &SignedTransaction) -> Option<Result<bool, ApiError>>;
}

/// A validator's own process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeProcess {
    /// Its id, if it is one of this machine's.
    pub pid: Option<u32>,
    /// The version of its program.
    pub version: String,
}

/// The parts of a running validator that the API uses.
#[derive(Clone)]
pub struct Running {
    /// Its chain, or the one that this process follows for it.
    pub ledger: Ledger,
    /// The height that it has reached, if the ledger is not its own.
    pub reached: Option<watch::Receiver<Height>>,
    pub mempool: Mempool,
    pub node: Arc<dyn NodeAccess>,
    /// Its own process, if it has one.
    pub process: Option<NodeProcess>,
    /// The QUIC address for runners.
    pub quic: SocketAddr,
    /// The address for other validators.
    pub p2p: SocketAddr,
}

impl Running {
    /// The height of its newest stored block, no higher than the ledger's.
    pub fn height(&self) -> Height {
        let stored = self.ledger.head().height();
        self.reached.as_ref().map_or(stored, |reached| stored.min(*reached.borrow()))
    }

    /// The state at [`Self::height`]; `None` if the ledger no longer has it.
    pub fn head(&self) -> Option<State> {
        match self.reached {
            None => Some(self.ledger.head()),
            Some(_) => self.ledger.at(self.height()).map(|rooted| rooted.state.clone()),
        }
    }
}

#[derive(Clone)]
struct ValidatorRun {
    running: Running,
    from: Height,
    /// The reason why it is paused; `None` if it is not.
    paused: Option<String>,
}

#[derive(Clone)]
enum Occupant {
    Running(ValidatorRun),
    /// The state at which it stopped (the genesis state before the first start), and the reason why
    /// it died if it ended by itself.
    Stopped(State, Option<String>),
}

/// A validator in the API, whether or not it runs.
pub struct ValidatorSlot {
    name: String,
    identity: GenesisValidator,
    occupant: watch::Sender<Occupant>,
    begun: Arc<OnceLock<Height>>,
    /// Held by the request that is starting or stopping it.
    pub(in crate::api) switching: Arc<tokio::sync::Mutex<()>>,
}

impl ValidatorSlot {
    pub(super) fn stopped(
        name: String,
        identity: GenesisValidator,
        state: State,
        begun: Arc<OnceLock<Height>>,
    ) -> Self {
        let occupant = watch::Sender::new(Occupant::Stopped(state, None));
        Self { name, identity, occupant, begun, switching: Arc::default() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub const fn identity(&self) -> &GenesisValidator {
        &self.identity
    }

    pub fn address(&self) -> Address {
        self.identity.pubkey.address()
    }

    /// The validator runs from now on, and reads may be answered from it.
    pub fn set_running(&self, running: Running) {
        let from = running.height();
        // The first start of any validator counts.
        let _ = self.begun.set(from);
        self.occupant.send_replace(Occupant::Running(ValidatorRun { running, from, paused: None }));
    }

    /// The validator has stopped: the API no longer uses its parts, and event streams from it end.
    pub fn set_stopped(&self) {
        self.end(None);
    }

    pub fn set_died(&self, reason: String) {
        self.end(Some(reason));
    }

    fn end(&self, reason: Option<String>) {
        self.occupant.send_modify(|occupant| match occupant {
            Occupant::Running(run) => {
                let head = run.running.head().unwrap_or_else(|| run.running.ledger.head());
                *occupant = Occupant::Stopped(head, reason);
            }
            Occupant::Stopped(_, died) => *died = reason,
        });
    }

    /// The validator decides nothing for now. Its store is read as before.
    pub fn set_paused(&self, reason: String) {
        self.occupant.send_modify(|occupant| {
            if let Occupant::Running(run) = occupant {
                run.paused = Some(reason);
            }
        });
    }

    pub(in crate::api) fn paused(&self) -> Option<String> {
        let (paused, node) = match &*self.occupant.borrow() {
            Occupant::Running(run) => (run.paused.clone(), run.running.node.clone()),
            Occupant::Stopped(..) => return None,
        };
        paused.or_else(|| node.paused())
    }

    pub(in crate::api) fn died(&self) -> Option<String> {
        match &*self.occupant.borrow() {
            Occupant::Running(_) => None,
            Occupant::Stopped(_, reason) => reason.clone(),
        }
    }

    pub fn running(&self) -> Option<Running> {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => Some(run.running.clone()),
            Occupant::Stopped(..) => None,
        }
    }

    /// The height of its newest stored block; the last known one if it is stopped.
    pub fn height(&self) -> Height {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => run.running.height(),
            Occupant::Stopped(state, _) => state.height(),
        }
    }

    /// The newest state known of it: of its ledger, or the last one if it is stopped.
    pub fn head(&self) -> State {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => run.running.ledger.head(),
            Occupant::Stopped(state, _) => state.clone(),
        }
    }

    pub(in crate::api) fn started_from(&self) -> Option<Height> {
        match &*self.occupant.borrow() {
            Occupant::Running(run) => Some(run.from),
            Occupant::Stopped(..) => None,
        }
    }

    /// Resolves when the validator has started, stopped or been replaced since the call.
    pub fn changes(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut occupant = self.occupant.subscribe();
        occupant.mark_unchanged();
        async move {
            // An error means that the whole backend is gone.
            let _ = occupant.changed().await;
        }
    }
}

impl fmt::Debug for ValidatorSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.running().is_some() { "running" } else { "stopped" };
        write!(f, "ValidatorSlot({}, {state})", self.name)
    }
}

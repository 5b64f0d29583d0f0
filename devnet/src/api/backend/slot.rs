//! A validator in the API, whether or not it runs.

use crate::{
    chain::{ledger::Ledger, mempool::Mempool},
    validator::{gateway::Submission, journal::Journal},
};
use cowboy_engine::{
    chain::{GenesisValidator, State},
    presence::Unmet,
    primitives::{Address, Hash, Height},
    wire::{BackpressureSignal, GoodbyeReason},
};
use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};
use tokio::sync::{mpsc, watch};

/// A runner's connection, as the validator at its other end sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedLink {
    pub runner: Address,
    pub refused: Option<GoodbyeReason>,
    /// The first other condition that keeps the validator from counting the runner as present.
    pub unmet: Option<Unmet>,
    pub load: Option<BackpressureSignal>,
    /// The height of the last valid ping; `None` before the first.
    pub last_ping: Option<Height>,
    pub withdrawn: Vec<String>,
}

/// A runner's last report of its progress with a job, over its connection to a validator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedProgress {
    pub runner: Address,
    /// The percentage done, from 0 to 100.
    pub percent: u16,
    pub detail: Option<String>,
    pub height: Height,
}

/// Returns the last progress reports of a validator's runners about an open job.
pub type ProgressHook = Arc<dyn Fn(&Hash) -> Vec<ReportedProgress> + Send + Sync>;

/// Returns a validator's journal of its runners, and the number of connections that wait for their
/// handshake.
pub type JournalHook = Arc<dyn Fn() -> (Journal, usize) + Send + Sync>;

/// The parts of a running validator that the API uses.
#[derive(Clone)]
pub struct Running {
    pub ledger: Ledger,
    pub mempool: Mempool,
    pub links: Arc<dyn Fn() -> Vec<ObservedLink> + Send + Sync>,
    pub progress: ProgressHook,
    /// The journal of its runners since it started.
    pub journal: JournalHook,
    pub handed_in: mpsc::Sender<Submission>,
    /// The QUIC address for runners.
    pub quic: SocketAddr,
    /// The address for other validators.
    pub p2p: SocketAddr,
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
        let from = running.ledger.head().height();
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
                *occupant = Occupant::Stopped(run.running.ledger.head(), reason);
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
        match &*self.occupant.borrow() {
            Occupant::Running(run) => run.paused.clone(),
            Occupant::Stopped(..) => None,
        }
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

    /// The state after its newest stored block; the last known one if it is stopped.
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

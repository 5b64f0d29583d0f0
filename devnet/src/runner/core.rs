//! What the tasks of a runner share: its job table and its connections.

use super::{
    pledges::Pledges,
    proof::{self, ProofError, Shown},
    targets::KnownValidators,
    worker::TaskProgress,
};
use crate::api::steer::HandAnswer;
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    job::{needs, spec::JobSpec},
    primitives::{Address, Hash, Height, PublicKey, SecretKey, codec::from_slice},
    registry::{Ability, JobKind},
    session::jobs::{JobReport, JobTable},
    wire::{AckStatus, BackpressureSignal, CancelReason, RejectReason},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
    time::SystemTime,
};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// An event in a runner's life, sent as it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    Connected {
        validator: PublicKey,
    },
    /// A connection ended or could not be established.
    Disconnected {
        validator: PublicKey,
        reason: String,
    },
    /// Work on a job begins: its command starts or its request goes out.
    Started {
        job_id: Hash,
        at: SystemTime,
    },
    /// A job has its result, which is on its way to the chain.
    Finished {
        job_id: Hash,
        /// Length of the result, in bytes.
        bytes: usize,
    },
    /// A job failed; the reason is on its way to the chain.
    Failed {
        job_id: Hash,
        reason: String,
    },
    /// The chain cancelled a job, or the job's deadline passed.
    Stopped {
        job_id: Hash,
        /// The validator's reason; `None`: the deadline passed.
        reason: Option<CancelReason>,
    },
}

pub(super) struct RunnerCore {
    pub(super) chain_id: u64,
    pub(super) key: SecretKey,
    pub(super) public: PublicKey,
    pub(super) kinds: BTreeSet<JobKind>,
    pub(super) by_hand: bool,
    /// The suspended abilities. Locked after `shared` when both are needed.
    pub(super) withdrawn: Mutex<BTreeSet<Ability>>,
    pub(super) agents: BTreeSet<Address>,
    pub(super) known: watch::Receiver<KnownValidators>,
    pub(super) count: watch::Sender<usize>,
    pub(super) activity: broadcast::Sender<Activity>,
    pub(super) pledges: Option<Arc<Pledges>>,
    /// Held while a commitment goes to disk and into the table.
    pub(super) committing: tokio::sync::Mutex<()>,
    pub(super) shared: Mutex<RunnerShared>,
}

pub(super) struct RunnerShared {
    pub(super) table: JobTable,
    pub(super) targets: BTreeMap<PublicKey, SocketAddr>,
    pub(super) kept: BTreeSet<PublicKey>,
    pub(super) links: BTreeMap<PublicKey, LinkHandle>,
    /// The validator whose assignment of a job was accepted, while that stream is open.
    pub(super) holders: BTreeMap<Hash, PublicKey>,
    /// The connection on which a result or commitment was sent that is not known to have arrived.
    pub(super) in_flight: BTreeMap<Hash, PublicKey>,
    /// Senders whose drop cancels the running jobs.
    pub(super) running: BTreeMap<Hash, oneshot::Sender<()>>,
    /// Jobs that wait for their results by hand.
    pub(super) unanswered: BTreeMap<Hash, oneshot::Sender<HandAnswer>>,
    pub(super) paused: bool,
    pub(super) closing: bool,
    pub(super) serial: u64,
    pub(super) told_load: Option<BackpressureSignal>,
    /// The height that the chain is believed to have.
    pub(super) head: Height,
}

pub(super) struct LinkHandle {
    /// Distinguishes it from earlier connections to the same validator.
    pub(super) serial: u64,
    pub(super) commands: mpsc::Sender<RunnerCommand>,
    pub(super) told: Height,
}

pub(super) enum RunnerCommand {
    Head(Height),
    Progress(Hash, TaskProgress),
    Deliver(JobReport),
    Answer(Hash, AckStatus),
    TellLoad,
    TellAbilities,
    Close,
}

impl RunnerCore {
    pub(super) fn say(&self, activity: Activity) {
        tracing::debug!(runner = %self.public.address(), ?activity, "activity");
        // Having no subscriber is not an error.
        let _ = self.activity.send(activity);
    }

    /// Replaces the validators to connect to. Says goodbye to validators that have left the subset,
    /// and returns those that need an upkeep task.
    pub(super) fn retarget(&self, known: KnownValidators) -> Vec<PublicKey> {
        let mut shared = self.shared.lock();
        shared.table.require(known.agreeing());
        let RunnerShared { targets: wanted, links, kept, .. } = &mut *shared;
        *wanted = known.targets.into_iter().map(|target| (target.key, target.address)).collect();
        for (_, link) in links.iter().filter(|(key, _)| !wanted.contains_key(key)) {
            link.command(RunnerCommand::Close);
        }
        let fresh: Vec<_> = wanted.keys().filter(|key| !kept.contains(key)).cloned().collect();
        kept.extend(fresh.iter().cloned());
        fresh
    }

    /// Takes a height from a validator. The believed height may rise, and deadlines may pass.
    pub(super) fn told(&self, shared: &mut RunnerShared, validator: &PublicKey, head: Height) {
        if let Some(link) = shared.links.get_mut(validator) {
            link.told = head;
        }
        let believed = shared.believed();
        if believed > shared.head {
            shared.head = believed;
            for link in shared.links.values() {
                link.command(RunnerCommand::Head(believed));
            }
            for job_id in shared.table.advance(believed) {
                shared.abandon(&job_id);
                self.say(Activity::Stopped { job_id, reason: None });
            }
            self.clear(shared);
        }
        shared.deliver_all();
    }

    pub(super) fn check(&self, job_spec: &[u8]) -> Result<JobSpec, RejectReason> {
        let spec: JobSpec = from_slice(job_spec).map_err(|_| RejectReason::InvalidSpec)?;
        spec.check().map_err(|_| RejectReason::InvalidSpec)?;
        if !self.kinds.contains(&spec.work.kind()) {
            return Err(RejectReason::UnsupportedKind);
        }
        let withdrawn = self.withdrawn.lock();
        let lacking = needs::of(&spec).find(|need| withdrawn.contains(need));
        match lacking {
            None => Ok(spec),
            Some(Ability::Pool(_)) => Err(RejectReason::MissingEntitlement),
            Some(_) => Err(RejectReason::UnsupportedKind),
        }
    }

    pub(super) fn read_proof(&self, job_id: &Hash, bytes: &[u8]) -> Result<Shown, ProofError> {
        let known = self.known.borrow().clone();
        proof::read(&known, (self.chain_id, self.public.address()), job_id, bytes)
    }

    pub(super) fn progressed(&self, job_id: Hash, progress: TaskProgress) {
        let shared = self.shared.lock();
        if let Some(link) = shared.holders.get(&job_id).and_then(|key| shared.links.get(key)) {
            link.command(RunnerCommand::Progress(job_id, progress));
        }
    }
}

impl RunnerShared {
    pub(super) fn load(&self) -> BackpressureSignal {
        self.table.signal(self.paused)
    }

    pub(super) fn misses_connections(&self) -> bool {
        self.targets.keys().any(|key| !self.links.contains_key(key))
    }

    pub(super) fn tell_load(&mut self) {
        let load = self.load();
        if self.told_load.as_ref() != Some(&load) {
            self.told_load = Some(load);
            for link in self.links.values() {
                link.command(RunnerCommand::TellLoad);
            }
        }
    }

    /// The lower median of the reported heights: no single validator of three can raise it.
    fn believed(&self) -> Height {
        let mut told: Vec<_> = self.links.values().map(|link| link.told).collect();
        told.sort_unstable();
        told.get(told.len().saturating_sub(1) / 2).copied().unwrap_or_default()
    }

    /// Stops a job's work if it is running, and forgets where the job came from.
    pub(super) fn abandon(&mut self, job_id: &Hash) {
        self.holders.remove(job_id);
        // Dropping the sender cancels the work.
        self.running.remove(job_id);
        self.unanswered.remove(job_id);
    }

    /// Sends a result that is not already on its way: to the validator that holds the job,
    /// otherwise to any validator that has not taken it.
    pub(super) fn deliver(&mut self, delivery: JobReport) {
        let job_id = delivery.job_id();
        if self.in_flight.contains_key(&job_id) {
            return;
        }
        let holder = self.holders.get(&job_id).and_then(|key| self.links.get_key_value(key));
        let sent = holder
            .into_iter()
            .chain(&self.links)
            .filter(|(key, _)| !self.table.has_taken(&job_id, key))
            .find(|(_, link)| link.command(RunnerCommand::Deliver(delivery.clone())))
            .map(|(key, _)| key.clone());
        if let Some(key) = sent {
            self.in_flight.insert(job_id, key);
        }
    }

    /// Sends every result that too few validators have taken and that is not on its way.
    pub(super) fn deliver_all(&mut self) {
        let waiting: Vec<_> = self.table.undelivered().collect();
        for delivery in waiting {
            self.deliver(delivery);
        }
    }

    pub(super) fn landed(&mut self, job_id: &Hash, validator: &PublicKey) {
        if self.in_flight.get(job_id) == Some(validator) {
            self.in_flight.remove(job_id);
        }
    }
}

impl LinkHandle {
    /// False when the connection's task is behind or has ended.
    pub(super) fn command(&self, command: RunnerCommand) -> bool {
        self.commands.try_send(command).is_ok()
    }
}

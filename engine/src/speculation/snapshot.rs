//! The machine as bytes: snapshot and restore.
//!
//! A snapshot is deterministic CBOR of everything except pending outputs: the tasks in order of
//! scheduling, with parents by their places in it, and everything that cannot be derived from them.
//! Depths, counts, indexes and queues are derived. Everything that the machine relies on is
//! validated; an invalid snapshot is refused, and the caller's machine is unaffected.
//!
//! Proofs that were in flight are handed out again with new numbers, as the same attempts, and
//! proofs that were being made are requested again.

use super::{
    Bonds, CommitmentStatus, Config, DependencyStatus, Graph, Opening, OutputCommitment,
    ParentLink, ProofStatus, Reason, RollbackReason, Speculation, Stake, Summary, TaskId,
    away::{Away, TRIES},
    breaker::Breaker,
    deadlines::NEVER,
    deadlines::TaskTerms,
    deferral::DeferredTask,
    graph::COUNTED,
    ledger::Checkpoint,
    output::EngineOutput,
    rollback::HISTORY,
    table::TaskIndex,
    view::Counters,
};
use crate::{
    primitives::{
        Hash, Wei,
        codec::{self, DecodeError},
    },
    record,
};
use std::collections::BTreeSet;

/// The format version of snapshots; others are refused.
const VERSION: u64 = 3;

/// Why bytes are not a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    #[error("the snapshot cannot be read: {0}")]
    Codec(#[from] DecodeError),
    #[error("the snapshot has form {got}, expected {VERSION}: start without it")]
    Version { got: u64 },
    /// Decodable, but not a reachable state of the machine.
    #[error("the snapshot contradicts itself: {what}")]
    Inconsistent { what: &'static str, task: Option<TaskId> },
}

fn wrong(what: &'static str) -> SnapshotError {
    SnapshotError::Inconsistent { what, task: None }
}

record! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Image {
        version: u64,
        config: Vec<(String, String)>,
        now: u64,
        stake: Stake,
        bonds: Bonds,
        breaker: Breaker,
        away: Option<Away>,
        cooldown_until: u64,
        pruned_at: u64,
        next_order: u64,
        next_submission: u64,
        triggers: Vec<(TaskId, RollbackReason)>,
        checkpoints: Vec<Checkpoint>,
        history: Vec<Summary>,
        counters: Counters,
        tasks: Vec<TaskImage>,
        retired: Vec<u32>,
    }
}

record! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct TaskImage {
        id: TaskId,
        /// The parents' places, and whether the link is only for order.
        parents: Vec<(u32, bool)>,
        status: DependencyStatus,
        bond: u64,
        inputs: Hash,
        accepted_at: u64,
        claim_expires_at: u64,
        attempt: u32,
        held: bool,
        commitment: Option<OutputCommitment>,
        proof: DeferredTask,
    }
}

record!(Opening { output_commitment, constraint_hash, salt });
record!(OutputCommitment { opening, created_at, expires_at, depth, status, checkpoint, proof });
record!(DeferredTask { order, until, submission, attempts, status, depth });
record!(Checkpoint { task, inputs, opening });

impl Speculation {
    /// The machine as deterministic CBOR.
    pub fn snapshot(&self) -> Vec<u8> {
        codec::to_vec(&self.image())
    }

    /// Restores the machine from a snapshot and advances it to `now`; the consequences are outputs.
    pub fn restore(bytes: &[u8], now: u64) -> Result<Self, SnapshotError> {
        let image: Image = codec::from_slice(bytes)?;
        if image.version != VERSION {
            return Err(SnapshotError::Version { got: image.version });
        }
        let mut machine = image.build()?;
        machine.resume(now);
        Ok(machine)
    }

    fn image(&self) -> Image {
        let graph = &self.graph;
        let mut tasks: Vec<TaskIndex> = graph.places().collect();
        tasks.sort_unstable_by_key(|&task| graph.nodes[task].seq);
        let mut places = vec![0; graph.nodes.len()];
        for (place, &task) in (0..).zip(&tasks) {
            places[usize::from(task)] = place;
        }
        let place = |task: TaskIndex| places[usize::from(task)];
        let task = |&task: &TaskIndex| {
            let terms = &self.terms[task];
            let parents = graph.parent_edges(task);
            TaskImage {
                id: graph.id(task),
                parents: parents
                    .map(|e| (place(e.parent), e.link == ParentLink::OrderOnly))
                    .collect(),
                status: graph.status_of(task),
                bond: terms.bond,
                inputs: terms.inputs,
                accepted_at: terms.accepted_at,
                claim_expires_at: terms.claim_expires_at,
                attempt: terms.attempt,
                held: terms.held,
                commitment: self.ledger.get(task).cloned(),
                proof: self.deferral.get(task),
            }
        };
        Image {
            version: VERSION,
            config: self.config.explicit().map(|(name, value)| (name.to_owned(), value)).collect(),
            now: self.now,
            stake: self.stake,
            bonds: self.bonds,
            breaker: self.breaker.clone(),
            away: self.away,
            cooldown_until: self.cooldown_until,
            pruned_at: self.pruned_at,
            next_order: self.deferral.next_order,
            next_submission: self.deferral.next_submission,
            triggers: self.triggers.iter().copied().collect(),
            checkpoints: self.checkpoints.iter().cloned().collect(),
            history: self.history.iter().cloned().collect(),
            counters: self.counters.clone(),
            tasks: tasks.iter().map(task).collect(),
            retired: graph.retired().map(place).collect(),
        }
    }

    /// Continues after a restore: first handles what has expired, then what was in flight.
    fn resume(&mut self, now: u64) {
        let mut flying = Vec::new();
        let mut proving = Vec::new();
        for at in self.graph.places() {
            let entry = self.deferral.get(at);
            match entry.status {
                ProofStatus::Submitting => flying.push((entry.submission, at)),
                ProofStatus::Queued | ProofStatus::Proving => {
                    proving.push((self.graph.nodes[at].seq, at));
                }
                _ => continue,
            }
            self.deferral.put(at, DeferredTask { until: NEVER, ..entry });
        }
        for at in self.graph.places().collect::<Vec<_>>() {
            self.watch(at);
        }
        self.advance(now);
        flying.sort_unstable();
        proving.sort_unstable();
        for (_, at) in flying {
            let entry = self.deferral.get(at);
            if entry.status == ProofStatus::Submitting {
                self.submit(at, entry);
            }
        }
        for (_, at) in proving {
            if matches!(self.deferral.get(at).status, ProofStatus::Queued | ProofStatus::Proving) {
                self.ask_for_proof(at);
            }
        }
        self.settle();
    }

    fn submit(&mut self, at: TaskIndex, entry: DeferredTask) {
        let submission = self.deferral.next_submission;
        self.deferral.next_submission += 1;
        let until = self.now.saturating_add(self.config.confirmation_timeout_ms);
        self.deferral.put(at, DeferredTask { until, submission, ..entry });
        self.watch(at);
        let (task, attempt) = (self.graph.id(at), entry.attempts);
        self.outputs.push_back(EngineOutput::Submit { task, submission, attempt });
    }
}

impl Image {
    fn build(&self) -> Result<Speculation, SnapshotError> {
        let settings = self.config.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let config = Config::default()
            .with(settings)
            .map_err(|_| wrong("an option is not within its range"))?;
        if config.explicit().count() != self.config.len() {
            return Err(wrong("its options are not those that were set"));
        }
        let graph = self.graph()?;
        let mut machine = Speculation::new(config, self.now);
        machine.graph = graph;
        for (at, task) in (0..).map(TaskIndex).zip(&self.tasks) {
            task.check(self, &machine.graph, at)
                .map_err(|what| SnapshotError::Inconsistent { what, task: Some(task.id) })?;
            machine.terms.cover(at);
            machine.terms[at] = task.terms();
            machine.deferral.put(at, task.proof);
            if let Some(commitment) = &task.commitment {
                machine.ledger.create(at, commitment.clone());
            }
        }
        self.check_rest(&machine.graph)?;
        machine.stake = self.stake;
        machine.bonds = self.bonds;
        machine.breaker = self.breaker.clone();
        machine.away = self.away;
        machine.cooldown_until = self.cooldown_until;
        machine.pruned_at = self.pruned_at;
        machine.deferral.next_order = self.next_order;
        machine.deferral.next_submission = self.next_submission;
        machine.triggers = self.triggers.iter().copied().collect();
        machine.checkpoints = self.checkpoints.iter().cloned().collect();
        machine.history = self.history.iter().cloned().collect();
        machine.counters = self.counters.clone();
        Ok(machine)
    }

    fn graph(&self) -> Result<Graph, SnapshotError> {
        if u32::try_from(self.tasks.len()).is_err() {
            return Err(wrong("more tasks than possible"));
        }
        let tasks = self.tasks.iter().map(|task| (task.id, task.status, task.parents.as_slice()));
        let Some(mut graph) = Graph::rebuild(tasks) else {
            return Err(wrong("its tasks are not a graph: one occurs twice, or waits for itself"));
        };
        let idle =
            |at: TaskIndex| !graph.status_of(at).is_live() && graph.nodes[at].live_children == 0;
        let expected: BTreeSet<u32> =
            (0..self.tasks.len() as u32).filter(|&place| idle(TaskIndex(place))).collect();
        let retired: BTreeSet<u32> = self.retired.iter().copied().collect();
        if retired != expected || retired.len() != self.retired.len() {
            return Err(wrong("the retired tasks are not those that no live task depends on"));
        }
        for &place in &self.retired {
            graph.retire(TaskIndex(place));
        }
        Ok(graph)
    }

    fn check_rest(&self, graph: &Graph) -> Result<(), SnapshotError> {
        let live = self.tasks.iter().filter(|task| task.status.is_live());
        let locked = live.map(|task| u128::from(task.bond)).sum();
        let tasks: BTreeSet<_> = self.checkpoints.iter().map(|one| one.task).collect();
        let probe = self.breaker.probe();
        let probing =
            probe.is_none_or(|task| graph.status(&task).is_some_and(DependencyStatus::is_live));
        let is = |holds: bool, what: &'static str| if holds { Ok(()) } else { Err(wrong(what)) };
        is(self.stake.locked == Wei::new(locked), "what is locked is not the sum of the bonds")?;
        is(self.breaker.is_sound(self.now), "the breaker is in an impossible state")?;
        is(probing, "the task that the breaker let through is not live")?;
        let away = self.away.is_none_or(|away| away.since <= self.now && away.tries <= TRIES);
        is(away, "the chain was lost later than now, or was tried too often")?;
        is(self.pruned_at <= self.now, "it was pruned later than now")?;
        is(tasks.len() == self.checkpoints.len(), "a task has two checkpoints")?;
        is(self.history.len() <= HISTORY, "more rollbacks than are remembered")?;
        let rows = (self.counters.tasks_rejected.len(), self.counters.rollbacks.len());
        is(
            rows.0 <= Reason::ALL.len() && rows.1 <= RollbackReason::ALL.len(),
            "more reasons are counted than there are",
        )
    }
}

impl TaskImage {
    fn terms(&self) -> TaskTerms {
        TaskTerms {
            bond: self.bond,
            inputs: self.inputs,
            accepted_at: self.accepted_at,
            claim_expires_at: self.claim_expires_at,
            deadline: NEVER,
            attempt: self.attempt,
            held: self.held,
        }
    }

    /// Whether this task's state is reachable for the machine; the error names the contradiction.
    fn check(&self, image: &Image, graph: &Graph, at: TaskIndex) -> Result<(), &'static str> {
        let is = |holds: bool, what: &'static str| if holds { Ok(()) } else { Err(what) };
        let mut places: Vec<u32> = self.parents.iter().map(|&(place, _)| place).collect();
        places.sort_unstable();
        places.dedup();
        is(places.len() == self.parents.len(), "a task has a parent twice")?;
        let clear = graph.is_clear(at);
        is(
            self.status != DependencyStatus::Confirmed || clear,
            "a task is confirmed before its parents",
        )?;
        is(self.accepted_at <= image.now, "a task is accepted later than now")?;
        let mut parents = graph.parent_edges(at);
        let dead = |status: DependencyStatus| {
            matches!(status, DependencyStatus::Failed | DependencyStatus::RolledBack)
        };
        is(
            !self.status.is_live()
                || parents.all(|edge| {
                    edge.link == ParentLink::OrderOnly || !dead(graph.status_of(edge.parent))
                }),
            "a task outlived a parent that it reads",
        )?;
        is(!self.held || (self.status.is_live() && !clear), "a confirmation is held for nothing")?;
        let proof = &self.proof;
        let commitment = self.commitment.as_ref();
        if let Some(one) = commitment {
            is(
                one.depth <= COUNTED.into() && one.created_at <= image.now,
                "a commitment is early",
            )?;
            let proved = matches!(
                one.status,
                CommitmentStatus::ProofGenerated | CommitmentStatus::Submitted
            );
            is(one.proof.is_some() == proved, "a commitment's proof is not what its status says")?;
        }
        is(
            proof.depth <= COUNTED.into()
                && proof.order <= image.next_order
                && proof.submission <= image.next_submission,
            "a proof was queued later than the next",
        )?;
        let created = commitment.is_some_and(|one| one.status == CommitmentStatus::Created);
        let proved = commitment.is_some_and(|one| one.proof.is_some());
        let flown = proof.attempts > 0;
        let fits = match (self.status, proof.status) {
            (DependencyStatus::Pending, ProofStatus::None) => commitment.is_none(),
            (DependencyStatus::Speculative, ProofStatus::Held) => created && !clear,
            (DependencyStatus::Speculative, ProofStatus::Queued | ProofStatus::Proving) => created,
            (DependencyStatus::Speculative, ProofStatus::Waiting) => proved && !clear,
            (DependencyStatus::Speculative, ProofStatus::Ready) => proved && clear,
            (DependencyStatus::Speculative, ProofStatus::BackOff | ProofStatus::Submitting) => {
                proved && clear && flown
            }
            (DependencyStatus::Confirmed, ProofStatus::Confirmed) => {
                commitment.is_none_or(|one| one.status == CommitmentStatus::Confirmed)
            }
            (DependencyStatus::Failed | DependencyStatus::RolledBack, ProofStatus::Cancelled) => {
                commitment.is_none_or(|one| {
                    !one.status.is_open() && one.status != CommitmentStatus::Confirmed
                })
            }
            _ => false,
        };
        is(fits, "a task, its commitment and its proof are not at the same point")?;
        is(
            proof.status.is_timed() || proof.until == NEVER,
            "a proof has a deadline that its status rules out",
        )
    }
}

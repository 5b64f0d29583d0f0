//! The state transition: the only thing that changes chain state (spec chain.md).
//!
//! Executing block H, a child of the state's head:
//! 1. P of each ancestor certified in H is derived; the newest is kept. The subset epoch advances
//!    if an advance is due.
//! 2. Proposals for H come into force. Timers: when an epoch begins, its timers enter the ring;
//!    those of H become due.
//! 3. Messages that actors in Python sent in earlier blocks are delivered; transactions execute in
//!    order.
//! 4. Due timers fire or are removed; before step 3 under `gba-auction`.
//! 5. Jobs: commitments close, deadlines pass, and new and waiting jobs are drawn.
//! 6. Actors are called back about the ends of jobs, in the order in which the jobs ended.
//! 7. Tasks whose deadline has passed expire.
//! 8. Basefees and governed parameters are set for H + 1; tips are paid to the proposer.
//! 9. The state is marked, or returns to a mark, if a transaction asked for that.
//!
//! A failing transaction changes only its fee and nonce, except that a completion with a refused
//! proof ends its commitment. A transaction whose nonce, chain id, signature or fee cap is invalid
//! when its turn comes changes nothing and is skipped with a receipt.

pub(super) mod actors;
pub(super) mod agents;
mod callbacks;
mod fees;
mod governance;
mod jobs;
pub(super) mod lane;
mod messages;
mod penalties;
mod powers;
mod results;
mod tasks;
mod timers;
mod transactions;

pub use crate::fees::meter::{CALLBACK_CELLS, CALLBACK_CYCLES};
pub use actors::{CallFailure, FailedMessage, FailureKind, MAX_DELIVERIES, MAX_WAITING_BYTES};
pub use callbacks::DISPATCHER;
pub use jobs::{JobError, candidates_root};
pub use penalties::check_equivocation;
pub use results::{
    Awaited, Claim, ResultError, check_commit, check_failure, check_result, check_reveal,
    check_reveals,
};
pub use tasks::{TaskError, check_completion};

use super::{
    block::{Block, Certificate, CertificateError, certify},
    committee::CommitteeError,
    event::{Event, EventKind, PresenceDerived, PresenceUnavailable, SubsetEpochAdvanced},
    receipt::{ActorReceipt, Fire, LaneReport, Receipt},
    state::{KnownPresence, MoneyError, State},
};
use crate::{
    actor::Effect,
    fees::{basefee, meter},
    job::{
        MruRead, SeedCertificate, SeedRule,
        filter::Verdict,
        selection::{Favoured, Selection},
        spec::SpecError,
    },
    presence::{Bitmap, Phase},
    primitives::{Address, Cells, Cycles, Hash, Height, Wei},
    pvm::Pvm,
    record,
    registry::{Order, PoolError, RegistryError},
    timer::{Bid, ParameterError, Policy, ScheduleTerms, TimerError},
};
use actors::{ActorEffects, BlockContext};
use lane::OpenLane;
use powers::Marking;
use std::{collections::BTreeMap, sync::Arc};

/// Maximum length of an error's text in a receipt, in bytes: a failing actor chooses its own text.
const MAX_ERROR_BYTES: usize = 4_096;

/// P(h) as derived by a block.
#[derive(Clone, Debug)]
pub struct Derived {
    pub height: Height,
    /// Index of the block's certificate that it follows from.
    pub certificate: usize,
    pub bitmap: Bitmap,
    /// The registry order that indexes the bitmap.
    pub order: Order,
}

record! {
    /// One draw, with everything needed to repeat it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DrawRecord {
        pub job_id: Hash,
        /// Hash of the parent block: the source of the seed if there is no certificate.
        pub parent: Hash,
        pub certificate: Option<SeedCertificate>,
        pub seed: Hash,
        /// The MRU record of (submitter, kind), even if it had expired.
        pub mru: Option<MruRead>,
        /// The migration phase, which decides whether the presence filter applied.
        pub phase: Phase,
        /// The h whose P(h) the draw used; `None`: none was recent enough, so no runner was
        /// present.
        pub presence: Option<Height>,
        /// The outcome of the filters for each registered runner.
        pub verdicts: Vec<Verdict>,
        /// The draw; empty if there were fewer candidates than the job asked for.
        pub selection: Selection,
    }
}

impl DrawRecord {
    /// The digest or hash that the seed of a first draw is made from.
    pub fn made_of(&self) -> Hash {
        self.certificate.map_or(self.parent, |certificate| certificate.digest)
    }

    /// The live MRU runner and its weight bonus; `height` is that of the block that drew.
    pub fn favoured(&self, height: Height) -> Option<Favoured> {
        self.mru?.live_at(height)
    }
}

/// The effects of a block.
#[derive(Clone, Debug)]
pub struct Execution {
    pub state: State,
    /// One per transaction, in order.
    pub receipts: Vec<Receipt>,
    pub fires: Vec<Fire>,
    pub lane: LaneReport,
    /// Bids of the agents that were asked, by timer, in the order in which they were asked.
    pub bids: Vec<(Hash, Bid)>,
    /// In the order in which they happened.
    pub events: Vec<Event>,
    /// One per embedded certificate with readable votes, ascending by height.
    pub derived: Vec<Derived>,
    /// Draws, successful or not.
    pub draws: Vec<DrawRecord>,
    /// Verified results: the job, the runner and the bytes.
    pub results: Vec<(Hash, Address, Arc<Vec<u8>>)>,
    /// Actors that were called back about the end of a job, in order.
    pub told: Vec<Told>,
}

/// A callback to an actor about the end of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub job_id: Hash,
    /// What the actor did, and the actors that it called.
    pub outcome: ActorReceipt,
    /// Why all of that was undone, or did not begin.
    pub error: Option<String>,
}

/// Why a block is not a child of a state. Consensus checks all of it before a block is final.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionError {
    #[error("block {height} extends {parent}, not the head {head}")]
    NotAChild { height: Height, parent: Hash, head: Hash },
    #[error(transparent)]
    Certificates(#[from] CertificateError),
}

/// Why a transaction fails. The text begins with the variant's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum TransactionFailure {
    #[error("NotYourKey: the key registered has address {0}, which is not the sender's")]
    NotYourKey(Address),
    #[error("Unauthorized: {0} is not a system deployer")]
    NotSystemDeployer(Address),
    #[error(transparent)]
    Job(#[from] JobError),
    #[error(transparent)]
    Result(#[from] ResultError),
    #[error(transparent)]
    Timer(#[from] TimerError),
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    #[error(transparent)]
    Committee(#[from] CommitteeError),
    #[error(transparent)]
    Actors(#[from] CallFailure),
    #[error(transparent)]
    Money(#[from] MoneyError),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Task(#[from] TaskError),
    #[error(transparent)]
    Ownership(#[from] transactions::OwnershipError),
    #[error(transparent)]
    Power(#[from] powers::PowerError),
}

/// What a test of actors sees of a block, in addition to its execution.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Effects that actors asked for in fires and callbacks, except writes to their stores.
    pub effects: Vec<(Address, Effect)>,
}

/// Executes `block` on the state of its parent, without a machine for actors in Python.
pub fn execute(parent: &State, block: &Block) -> Result<Execution, ExecutionError> {
    execute_on(None, parent, block)
}

/// Executes `block` on the state of its parent. `pvm` runs actors in Python; its tuple must be that
/// of the chain's parameters.
pub fn execute_on(
    pvm: Option<&dyn Pvm>,
    parent: &State,
    block: &Block,
) -> Result<Execution, ExecutionError> {
    run(parent, block, pvm, None).map(|(execution, _)| execution)
}

pub(super) fn execute_watched(
    parent: &State,
    block: &Block,
) -> Result<(Execution, Watch), ExecutionError> {
    let (execution, watch) = run(parent, block, None, Some(Watch::default()))?;
    Ok((execution, watch.unwrap_or_default()))
}

fn run(
    parent: &State,
    block: &Block,
    pvm: Option<&dyn Pvm>,
    watch: Option<Watch>,
) -> Result<(Execution, Option<Watch>), ExecutionError> {
    let header = &block.header;
    if header.parent != parent.head_hash || header.height != parent.height().next() {
        return Err(ExecutionError::NotAChild {
            height: header.height,
            parent: header.parent,
            head: parent.head_hash,
        });
    }
    let mut run = Run {
        parent,
        block,
        pvm,
        state: parent.clone(),
        events: Vec::new(),
        transaction: None,
        timer: None,
        cycles: Cycles::ZERO,
        cells: Cells::ZERO,
        tips: Wei::ZERO,
        terms: parent.timer_terms(header.height),
        proofs: tasks::verify_proofs(parent, block),
        fires: Vec::new(),
        bids: Vec::new(),
        results: Vec::new(),
        revealed: BTreeMap::new(),
        told: Vec::new(),
        marking: None,
        watch,
    };
    run.state.head = Arc::new(header.clone());
    run.state.head_hash = header.hash();
    let derived = run.resolve_certificates()?;
    let due = parent.subset_epoch_due(header.height);
    if let Some(due) = &due {
        run.emit(SubsetEpochAdvanced { epoch: due.number });
    }
    run.state.validators.enter(header.height, parent.rhythm(), due);
    run.activate_proposals();
    let mut lane = run.open_lane();
    let timers_first = run.terms.policy == Policy::GbaAuction;
    if timers_first {
        run.fire_timers(&mut lane);
    }
    let messages = run.state.outbox.0.clone();
    let receipts = block.transactions.iter().map(|signed| run.transaction(signed)).collect();
    run.transaction = None;
    if !timers_first {
        run.fire_timers(&mut lane);
    }
    run.deliver(&messages);
    run.pass_deadlines();
    let draws = run.draw_jobs();
    run.call_back();
    run.expire_tasks();
    let lane = run.settle(lane);
    run.finish_marking();
    let Run { state, events, fires, bids, results, told, watch, .. } = run;
    let execution =
        Execution { state, receipts, fires, lane, bids, events, derived, draws, results, told };
    Ok((execution, watch))
}

/// One block under execution.
struct Run<'a> {
    parent: &'a State,
    block: &'a Block,
    pvm: Option<&'a dyn Pvm>,
    state: State,
    events: Vec<Event>,
    /// The transaction under execution; events are attributed to it.
    transaction: Option<Hash>,
    /// The timer that fires; events are attributed to it.
    timer: Option<Hash>,
    /// Usage by transactions.
    cycles: Cycles,
    cells: Cells,
    tips: Wei,
    /// The terms for timers, read once at the block's start.
    terms: ScheduleTerms,
    /// Verdicts on the block's proofs, which are checked together.
    proofs: tasks::Verdicts,
    fires: Vec<Fire>,
    bids: Vec<(Hash, Bid)>,
    results: Vec<(Hash, Address, Arc<Vec<u8>>)>,
    /// Jobs with results revealed in this block, and whether their aggregator revealed them.
    revealed: BTreeMap<Hash, bool>,
    told: Vec<Told>,
    /// What becomes of the state at the block's end.
    marking: Option<Marking>,
    watch: Option<Watch>,
}

impl<'a> Run<'a> {
    fn height(&self) -> Height {
        self.block.header.height
    }

    fn emit(&mut self, kind: impl Into<EventKind>) {
        let (transaction, timer) = (self.transaction, self.timer);
        self.events.push(Event { transaction, timer, kind: kind.into() });
    }

    fn emit_all(&mut self, kinds: Vec<EventKind>) {
        for kind in kinds {
            self.emit(kind);
        }
    }

    fn resolve_certificates(&mut self) -> Result<Vec<Derived>, ExecutionError> {
        let candidates = self.parent.head.candidates(self.parent.head_hash);
        let certificates = &self.block.certificates;
        let (heights, _) = certify(&candidates, certificates.iter().map(|c| c.block))?;
        let mut derived = Vec::with_capacity(heights.len());
        for (index, (height, certificate)) in heights.into_iter().zip(certificates).enumerate() {
            self.keep_for_seeds(height, certificate);
            let Some(order) = self.parent.order_for_votes_on(height).cloned() else { continue };
            let votes: Vec<_> =
                certificate.votes.iter().map(|v| (v.validator, &v.presence)).collect();
            let bitmap = self.parent.presence_from(height, &votes, &order);
            self.emit(PresenceDerived {
                certified: height,
                votes: u32::try_from(votes.len()).unwrap_or(u32::MAX),
                present: bitmap.count_ones(),
                registered: order.len(),
            });
            if self.state.presence.as_ref().is_none_or(|known| known.height < height) {
                let mut present: Vec<Address> =
                    bitmap.ones().map(|i| order.as_slice()[i as usize]).collect();
                present.sort_unstable();
                self.state.presence = Some(KnownPresence { height, present: Arc::new(present) });
            }
            derived.push(Derived { height, certificate: index, bitmap, order });
        }
        if self.state.present_at(self.height()).is_none() {
            let newest = self.state.presence.as_ref().map(|known| known.height);
            self.emit(PresenceUnavailable { newest });
        }
        Ok(derived)
    }

    /// Keeps the newest certificate's contribution to the seeds of draws in later blocks.
    fn keep_for_seeds(&mut self, height: Height, certificate: &Certificate) {
        let newer = self.state.seed_certificate.is_none_or(|known| known.height < height);
        if self.parent.params.selection_seed != SeedRule::Certificate || !newer {
            return;
        }
        let committee = self.parent.committee_in(self.parent.epoch_at(height));
        let proposer = self.block.header.proposer;
        let embedder = committee.iter().position(|v| v.consensus_key == proposer);
        let embedder = embedder.and_then(|place| u32::try_from(place).ok());
        let digest = certificate.seed_digest(embedder);
        self.state.seed_certificate = Some(SeedCertificate { height, digest });
    }

    /// The place where actors run for `cause`, a transaction or a timer.
    fn place(&self, cause: Hash, sender: Option<Address>) -> BlockContext<'a> {
        let header = &self.block.header;
        BlockContext {
            parent: header.parent,
            height: header.height,
            timestamp_ms: header.timestamp_ms,
            cause,
            sender,
            terms: self.terms,
            pvm: self.pvm,
            watched: self.watch.is_some(),
            traced: actors::Traced::Nothing,
        }
    }

    /// Passes the effects of a call that is not undone to the watch.
    fn show(&mut self, done: &mut ActorEffects) {
        if let Some(watch) = self.watch.as_mut().filter(|_| done.result.is_ok()) {
            watch.effects.append(&mut done.effects);
        }
    }

    fn told(
        &mut self,
        done: ActorEffects,
        receipt: &mut Receipt,
    ) -> Result<(), TransactionFailure> {
        let (events, outcome, ended) = done.told();
        self.emit_all(events);
        receipt.actor = Some(outcome);
        ended.map_err(TransactionFailure::from)
    }

    /// Sets the basefees for the next block and pays tips to the proposer.
    fn settle(&mut self, lane: OpenLane) -> LaneReport {
        let (used, report) = self.close_lane(lane);
        let cycles = self.cycles.saturating_add(used.cycles).get();
        let cells = self.cells.saturating_add(used.cells).get();
        let state = &mut self.state;
        state.timers.lane.last_cycles = cycles;
        state.basefee_cycle = basefee::next(state.basefee_cycle, cycles, meter::TARGET_CYCLES);
        state.basefee_cell = basefee::next(state.basefee_cell, cells, meter::TARGET_CELLS);
        let height = self.block.header.height;
        state.prepare(height.next());
        state.note_order(height);
        if self.tips.is_zero() {
            return report;
        }
        let proposer = self
            .parent
            .validators()
            .iter()
            .find(|v| v.consensus_key == self.block.header.proposer)
            .map(|v| v.pubkey.address());
        // A proposer is always in the set; if it were not, its tips would be burned rather than
        // lost.
        let paid = proposer.is_some_and(|proposer| self.state.credit(proposer, self.tips).is_ok());
        if !paid {
            self.state.burned.transactions =
                self.state.burned.transactions.saturating_add(self.tips);
        }
        report
    }
}

/// An error's text, cut to at most `limit` bytes.
fn shortened(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.push('…');
    }
    text
}

//! The state transition: the only thing that changes chain state (spec chain.md).
//!
//! Upon block H, child of the state's head:
//! 1. P of each ancestor certified in H is derived; the newest is kept.
//! 2. (timers) 3. Transactions in order. 4. (due timers)
//! 5. Jobs: deadlines pass, jobs recorded in H or waiting since are drawn.
//! 6. (callbacks) 7. (speculation)
//! 8. Basefees for H + 1; tips to the proposer.
//!
//! A failing transaction changes nothing but its fee and nonce; one whose nonce, chain id,
//! signature or fee cap does not stand when its turn comes changes nothing and is skipped with a
//! receipt.

use super::{
    block::{Block, CertificateError, certify},
    event::{
        EntitlementGranted, EntitlementRevoked, Event, EventKind, JobAssigned, JobFailed,
        JobSubmitted, JobVerified, JobWaiting, MruUpdated, PresenceDerived, PresenceUnavailable,
        RunnerDeregistered, RunnerRegistered, RunnerUpdated, SubsetEpochAdvanced, Transferred,
    },
    receipt::{Receipt, Status},
    state::{Account, KnownPresence, State},
    transaction::{Payload, RegisterRunner, SignedTransaction, SubmitResult, Transfer},
};
use crate::{
    fees::{basefee, meter},
    job::{
        filter::{Scene, Verdict},
        mru::MruRecord,
        selection::{self, Selection},
        spec::{Assignment, Job, JobSpec, JobStatus, Outcome, SpecError},
    },
    presence::{self, Bitmap, ThresholdRule},
    primitives::{Address, Cells, Cycles, Hash, Height, Wei, keccak256, merkle::Map},
    record,
    registry::{Order, PoolError, RegistryError},
    wire,
};
use std::sync::Arc;

/// P(h) as a block made it known.
#[derive(Clone, Debug)]
pub struct Derived {
    /// h.
    pub height: Height,
    /// Which of the block's certificates it follows from.
    pub certificate: usize,
    /// P(h).
    pub bitmap: Bitmap,
    /// What its bits stand for.
    pub order: Order,
}

/// One draw, with all that is needed to do it again.
#[derive(Clone, Debug)]
pub struct DrawRecord {
    /// The job.
    pub job_id: Hash,
    /// Hash of the parent block: part of the seed.
    pub parent: Hash,
    /// The seed.
    pub seed: Hash,
    /// The live MRU runner of (submitter, kind).
    pub mru: Option<Address>,
    /// What became of each registered runner in the filters.
    pub verdicts: Vec<Verdict>,
    /// The draw; empty where there were fewer candidates than asked for.
    pub selection: Selection,
}
record!(DrawRecord { job_id, parent, seed, mru, verdicts, selection });

/// What a block did.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The state after it.
    pub state: State,
    /// One per transaction, in order.
    pub receipts: Vec<Receipt>,
    /// In the order in which they happened.
    pub events: Vec<Event>,
    /// Per embedded certificate whose votes can be read, ascending by height.
    pub derived: Vec<Derived>,
    /// Draws, successful or not.
    pub draws: Vec<DrawRecord>,
}

/// Why a block is no child of a state. Consensus has checked all of it before a block is final.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionError {
    /// It extends another block.
    #[error("block {height} extends {parent}, not the head {head}")]
    NotAChild {
        /// The block's height.
        height: Height,
        /// Whom it extends.
        parent: Hash,
        /// The state's head.
        head: Hash,
    },
    /// Its certificates break the rule.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
}

/// Why a transaction fails. The variant's name opens the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("InsufficientBalance: {need} wei are needed beside the fee, {have} are there")]
    Balance { need: Wei, have: Wei },
    #[error("BalanceOverflow: the receiver would hold more than 2^128 wei")]
    Overflow,
    #[error("NotYourKey: the key registered has address {0}, which is not the sender's")]
    NotYourKey(Address),
    #[error("JobExists: {0} was submitted before")]
    JobExists(Hash),
    #[error("UnknownJob: no job {0}")]
    UnknownJob(Hash),
    #[error("JobNotAssigned: the job is {0}; results count while it is Assigned")]
    NotAssigned(&'static str),
    #[error("NotInCommittee: {0} was not drawn for this job")]
    NotInCommittee(Address),
    #[error("ResultTooLarge: {got} bytes, the job takes {limit}")]
    ResultTooLarge { got: usize, limit: u32 },
    #[error("BadResultSignature: not {0}'s signature over this job and result")]
    BadResultSignature(Address),
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// Executes `block` on the state of its parent.
pub fn execute(parent: &State, block: &Block) -> Result<Execution, ExecutionError> {
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
        state: parent.clone(),
        events: Vec::new(),
        transaction: None,
        cycles: Cycles::ZERO,
        cells: Cells::ZERO,
        tips: Wei::ZERO,
    };
    run.state.head = Arc::new(header.clone());
    run.state.head_hash = header.hash();
    if header.subset_epoch != parent.head.subset_epoch {
        run.emit(SubsetEpochAdvanced { epoch: header.subset_epoch });
    }
    let derived = run.resolve_certificates()?;
    let receipts = block.transactions.iter().map(|signed| run.transaction(signed)).collect();
    run.transaction = None;
    run.pass_deadlines();
    let draws = run.draw_jobs();
    run.settle();
    Ok(Execution { state: run.state, receipts, events: run.events, derived, draws })
}

/// One block under execution.
struct Run<'a> {
    parent: &'a State,
    block: &'a Block,
    state: State,
    events: Vec<Event>,
    /// The transaction under execution, which events are put down to.
    transaction: Option<Hash>,
    cycles: Cycles,
    cells: Cells,
    tips: Wei,
}

impl Run<'_> {
    fn height(&self) -> Height {
        self.block.header.height
    }

    fn emit(&mut self, kind: impl Into<EventKind>) {
        self.events.push(Event { transaction: self.transaction, kind: kind.into() });
    }

    fn resolve_certificates(&mut self) -> Result<Vec<Derived>, ExecutionError> {
        let candidates = self.parent.head.candidates(self.parent.head_hash);
        let certificates = &self.block.certificates;
        let (heights, _) = certify(&candidates, certificates.iter().map(|c| c.block))?;
        let validators = u32::try_from(self.parent.validators.len()).unwrap_or(u32::MAX);
        let rule = self.parent.params.threshold_rule;
        let mut derived = Vec::with_capacity(heights.len());
        for (index, (height, certificate)) in heights.into_iter().zip(certificates).enumerate() {
            let Some(order) = self.parent.order_for_votes_on(height).cloned() else { continue };
            let members = match rule {
                ThresholdRule::Subset => self.parent.subset_members(&order),
                ThresholdRule::Committee | ThresholdRule::Quorum => Vec::new(),
            };
            let votes: Vec<_> =
                certificate.votes.iter().map(|v| (v.validator, &v.presence)).collect();
            let bitmap = presence::canonical(&votes, order.len(), validators, rule, &members);
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

    fn transaction(&mut self, signed: &SignedTransaction) -> Receipt {
        let hash = signed.hash();
        self.transaction = Some(hash);
        let mut receipt = Receipt {
            transaction: hash,
            sender: Address::default(),
            status: Status::Success,
            cycles: Cycles::ZERO,
            cells: Cells::ZERO,
            burned: Wei::ZERO,
            tip: Wei::ZERO,
        };
        if let Err(reason) = self.charge(signed, &mut receipt) {
            receipt.status = Status::Skipped(reason);
            return receipt;
        }
        let (before, events) = (self.state.clone(), self.events.len());
        if let Err(refusal) = self.apply(receipt.sender, &signed.transaction.payload, signed) {
            self.state = before;
            self.events.truncate(events);
            receipt.status = Status::Failed(refusal.to_string());
        }
        receipt
    }

    /// Takes the fee and counts the nonce, or says why the transaction is skipped.
    fn charge(&mut self, signed: &SignedTransaction, receipt: &mut Receipt) -> Result<(), String> {
        let tx = &signed.transaction;
        if tx.chain_id != self.state.chain_id {
            return Err(format!(
                "WrongChain: for chain {:#x}, this is {:#x}",
                tx.chain_id, self.state.chain_id
            ));
        }
        receipt.sender = signed.sender().map_err(|error| error.to_string())?;
        let mut account = self.state.account(&receipt.sender);
        if tx.nonce != account.nonce {
            return Err(format!("WrongNonce: {} where {} is next", tx.nonce, account.nonce));
        }
        let (cycles, cells) = signed.usage();
        if cycles > tx.cycle_limit || cells > tx.cell_limit {
            return Err(format!(
                "LimitTooLow: {cycles} cycles and {cells} cells are used, {} and {} bought",
                tx.cycle_limit, tx.cell_limit
            ));
        }
        let (block_cycles, block_cells) =
            (self.cycles.saturating_add(cycles), self.cells.saturating_add(cells));
        if block_cycles.get() > meter::MAX_BLOCK_CYCLES
            || block_cells.get() > meter::MAX_BLOCK_CELLS
        {
            return Err("BlockFull: the block's cycles or cells are used up".into());
        }
        let cycle = price(
            self.state.basefee_cycle,
            tx.fees.max_fee_per_cycle,
            tx.fees.max_priority_per_cycle,
        )
        .ok_or_else(|| fee_too_low("cycle", self.state.basefee_cycle, tx.fees.max_fee_per_cycle))?;
        let cell =
            price(self.state.basefee_cell, tx.fees.max_fee_per_cell, tx.fees.max_priority_per_cell)
                .ok_or_else(|| {
                    fee_too_low("cell", self.state.basefee_cell, tx.fees.max_fee_per_cell)
                })?;
        let per = |rate: Wei, units: u64| rate.checked_mul(u128::from(units));
        let (burned, tip) = per(self.state.basefee_cycle, cycles.get())
            .zip(per(self.state.basefee_cell, cells.get()))
            .and_then(|(a, b)| a.checked_add(b))
            .zip(
                per(cycle, cycles.get())
                    .zip(per(cell, cells.get()))
                    .and_then(|(a, b)| a.checked_add(b)),
            )
            .ok_or("FeeOverflow: the fee is beyond 2^128 wei")?;
        let fee = burned.checked_add(tip).ok_or("FeeOverflow: the fee is beyond 2^128 wei")?;
        account.balance = account.balance.checked_sub(fee).ok_or_else(|| {
            format!("InsufficientBalance: the fee is {fee} wei, {} are there", account.balance)
        })?;
        account.nonce = account.nonce.saturating_add(1);
        self.state.accounts.insert(receipt.sender, account);
        self.state.burned = self.state.burned.saturating_add(burned);
        self.tips = self.tips.saturating_add(tip);
        (self.cycles, self.cells) = (block_cycles, block_cells);
        (receipt.cycles, receipt.cells) = (cycles, cells);
        (receipt.burned, receipt.tip) = (burned, tip);
        Ok(())
    }

    fn apply(
        &mut self,
        sender: Address,
        payload: &Payload,
        signed: &SignedTransaction,
    ) -> Result<(), Refusal> {
        match payload {
            Payload::Transfer(Transfer { to, amount }) => {
                self.debit(sender, *amount)?;
                self.credit(*to, *amount)?;
                self.emit(Transferred { from: sender, to: *to, amount: *amount });
            }
            Payload::RegisterRunner(register) => self.register(sender, register)?,
            Payload::UpdateRunner(update) => {
                self.state.registry.update(
                    &sender,
                    update.capabilities.clone(),
                    update.price_per_second,
                )?;
                self.emit(RunnerUpdated { runner: sender });
            }
            Payload::DeregisterRunner => {
                let stake = self.state.registry.deregister(&sender)?;
                self.credit(sender, stake)?;
                self.emit(RunnerDeregistered { runner: sender, stake });
            }
            Payload::RunnerHeartbeat => {
                let height = self.height();
                self.state.registry.heartbeat(&sender, height)?;
            }
            Payload::GrantEntitlement(grant) => {
                let (pool, runner) = (grant.pool.clone(), grant.runner);
                self.state.entitlements.grant(sender, &pool, runner, grant.valid_until)?;
                self.emit(EntitlementGranted { pool, runner });
            }
            Payload::RevokeEntitlement(revoke) => {
                let (pool, runner) = (revoke.pool.clone(), revoke.runner);
                self.state.entitlements.revoke(sender, &pool, runner)?;
                self.emit(EntitlementRevoked { pool, runner });
            }
            Payload::SubmitJob(spec) => self.submit_job(sender, spec, signed.transaction.nonce)?,
            Payload::SubmitResult(result) => self.submit_result(result)?,
        }
        Ok(())
    }

    fn register(&mut self, sender: Address, register: &RegisterRunner) -> Result<(), Refusal> {
        let address = register.pubkey.address();
        if address != sender {
            return Err(Refusal::NotYourKey(address));
        }
        self.debit(sender, register.stake)?;
        let height = self.height();
        let runner = self.state.registry.register(
            height,
            register.pubkey.clone(),
            register.stake,
            register.capabilities.clone(),
            register.price_per_second,
        )?;
        let index = self.state.registry.order().len() - 1;
        self.emit(RunnerRegistered { runner, index, stake: register.stake });
        Ok(())
    }

    fn submit_job(
        &mut self,
        submitter: Address,
        spec: &Arc<JobSpec>,
        nonce: u64,
    ) -> Result<(), Refusal> {
        spec.check()?;
        let id = spec.job_id(&submitter, nonce);
        if self.state.jobs.contains_key(&id) {
            return Err(Refusal::JobExists(id));
        }
        self.debit(submitter, spec.escrow())?;
        let job = Job {
            spec: spec.clone(),
            submitter,
            submitted_at: self.height(),
            status: JobStatus::Pending,
        };
        let (deadline, kind) = (job.deadline(), spec.work.kind());
        self.state.jobs.insert(id, job);
        self.state.open_jobs.insert(id, deadline);
        self.emit(JobSubmitted { job_id: id, submitter, kind });
        Ok(())
    }

    /// M = 1: the result is final when included (jobs.md §5).
    fn submit_result(&mut self, submitted: &SubmitResult) -> Result<(), Refusal> {
        let SubmitResult { job_id, runner, result, runner_signature } = submitted;
        let job = self.state.jobs.get(job_id).ok_or(Refusal::UnknownJob(*job_id))?.clone();
        let JobStatus::Assigned(assignment) = &job.status else {
            return Err(Refusal::NotAssigned(job.status.name()));
        };
        let record = self
            .state
            .registry
            .get(runner)
            .filter(|_| assignment.committee.contains(runner))
            .ok_or(Refusal::NotInCommittee(*runner))?;
        let limit = job.spec.bounds.max_return_bytes;
        if result.len() > limit as usize {
            return Err(Refusal::ResultTooLarge { got: result.len(), limit });
        }
        let result_hash = keccak256(&[result]);
        let digest = wire::JobResult::digest(self.state.chain_id, job_id, result);
        if !record.pubkey.verify(&digest, runner_signature) {
            return Err(Refusal::BadResultSignature(*runner));
        }
        let price = price_of_time(
            record.price_per_second,
            self.block.header.timestamp_ms.saturating_sub(assignment.timestamp_ms),
            job.spec.max_price,
        );
        let paid = price.saturating_add(job.spec.tip);
        let refunded = job.spec.escrow().saturating_sub(paid);
        self.credit(*runner, paid)?;
        self.credit(job.submitter, refunded)?;
        self.state.registry.release(runner, true)?;
        let height = self.height();
        let outcome = Outcome { height, runner: *runner, result_hash, paid };
        let (submitter, kind) = (job.submitter, job.spec.work.kind());
        self.end(job_id, &job, JobStatus::Verified(assignment.clone(), outcome));
        let (job_id, runner) = (*job_id, *runner);
        self.state.mru.insert((submitter, kind), MruRecord { runner, set_at: height });
        self.emit(JobVerified { job_id, runner, result_hash, paid, refunded });
        self.emit(MruUpdated { submitter, kind, runner });
        Ok(())
    }

    fn end(&mut self, job_id: &Hash, job: &Job, status: JobStatus) {
        self.state.jobs.insert(*job_id, Job { status, ..job.clone() });
        self.state.open_jobs.remove(job_id);
    }

    /// Jobs whose last block this was end without result.
    fn pass_deadlines(&mut self) {
        let height = self.height();
        let due: Vec<Hash> = self
            .state
            .open_jobs
            .iter()
            .filter(|(_, deadline)| **deadline <= height)
            .map(|(id, _)| *id)
            .collect();
        for job_id in due {
            let job = self.state.jobs.get(&job_id).expect("an open job is a job").clone();
            let assignment = job.status.assignment().cloned();
            for runner in assignment.iter().flat_map(|a| &a.committee) {
                self.state
                    .registry
                    .release(runner, false)
                    .expect("a runner with a job in hand cannot deregister");
            }
            let refunded = job.spec.escrow();
            self.credit(job.submitter, refunded).expect("what was debited fits again");
            self.end(&job_id, &job, JobStatus::Failed(assignment));
            self.emit(JobFailed { job_id, refunded });
        }
    }

    /// Draws a committee for every job that has none.
    fn draw_jobs(&mut self) -> Vec<DrawRecord> {
        let mut pending: Vec<(Height, Hash)> = self
            .state
            .open_jobs()
            .filter(|(_, job)| job.status == JobStatus::Pending)
            .map(|(id, job)| (job.submitted_at, *id))
            .collect();
        pending.sort_unstable();
        pending.into_iter().map(|(_, job_id)| self.draw(job_id)).collect()
    }

    fn draw(&mut self, job_id: Hash) -> DrawRecord {
        let height = self.height();
        let job = self.state.jobs.get(&job_id).expect("an open job is a job").clone();
        let registry = &self.state.registry;
        let verdicts = Scene {
            height,
            registry: &self.parent.registry,
            active_jobs: &|runner| registry.get(runner).map_or(u32::MAX, |r| r.active_jobs),
            entitlements: &self.parent.entitlements,
            present: self.state.present_at(height),
        }
        .judge(&job.spec);
        // One that deregistered in this very block is in the parent's registry, not in this one.
        let gone = |runner: &Address| registry.get(runner).is_none_or(|r| r.deregistered);
        let candidates: Vec<(Address, Wei)> = verdicts
            .iter()
            .filter(|v| v.dropped_by.is_none() && !gone(&v.runner))
            .map(|v| (v.runner, v.stake))
            .collect();
        let seed = selection::seed(self.block.header.parent, job_id, job.submitted_at);
        let mru = self.read_mru(job.submitter, &job.spec);
        let wanted = job.spec.verification.runners as usize;
        let selection = if candidates.len() < wanted {
            Selection::default()
        } else {
            selection::draw(&candidates, seed, wanted, mru)
        };
        if selection.committee.is_empty() {
            let registered = u32::try_from(verdicts.len()).unwrap_or(u32::MAX);
            self.emit(JobWaiting { job_id, registered });
        } else {
            let deadline = job.deadline();
            for runner in &selection.committee {
                self.state.registry.assign(runner).expect("a candidate is registered");
            }
            let assignment = Assignment {
                height,
                timestamp_ms: self.block.header.timestamp_ms,
                seed,
                candidates_root: candidates_root(&candidates),
                committee: selection.committee.clone(),
            };
            self.state.jobs.insert(job_id, Job { status: JobStatus::Assigned(assignment), ..job });
            let committee = selection.committee.clone();
            self.emit(JobAssigned { job_id, committee, deadline });
        }
        let parent = self.block.header.parent;
        DrawRecord { job_id, parent, seed, mru, verdicts, selection }
    }

    /// The live MRU runner; a record past its time is removed by being read.
    fn read_mru(&mut self, submitter: Address, spec: &JobSpec) -> Option<Address> {
        let key = (submitter, spec.work.kind());
        let record = self.state.mru.get(&key)?;
        if record.is_live(self.height()) {
            return Some(record.runner);
        }
        self.state.mru.remove(&key);
        None
    }

    /// Basefees for the next block; tips to the proposer.
    fn settle(&mut self) {
        let state = &mut self.state;
        state.basefee_cycle =
            basefee::next(state.basefee_cycle, self.cycles.get(), meter::TARGET_CYCLES);
        state.basefee_cell =
            basefee::next(state.basefee_cell, self.cells.get(), meter::TARGET_CELLS);
        let height = self.block.header.height;
        state.note_order(height);
        if self.tips.is_zero() {
            return;
        }
        let proposer = self
            .parent
            .validators
            .iter()
            .find(|v| v.consensus_key == self.block.header.proposer)
            .map(|v| v.pubkey.address());
        // A proposer outside the set cannot be; its tips would be burned rather than lost.
        let paid = proposer.is_some_and(|proposer| self.credit(proposer, self.tips).is_ok());
        if !paid {
            self.state.burned = self.state.burned.saturating_add(self.tips);
        }
    }

    fn debit(&mut self, from: Address, amount: Wei) -> Result<(), Refusal> {
        let account = self.state.account(&from);
        let balance = account
            .balance
            .checked_sub(amount)
            .ok_or(Refusal::Balance { need: amount, have: account.balance })?;
        self.state.accounts.insert(from, Account { balance, ..account });
        Ok(())
    }

    fn credit(&mut self, to: Address, amount: Wei) -> Result<(), Refusal> {
        if amount.is_zero() {
            return Ok(());
        }
        let account = self.state.account(&to);
        let balance = account.balance.checked_add(amount).ok_or(Refusal::Overflow)?;
        self.state.accounts.insert(to, Account { balance, ..account });
        Ok(())
    }
}

/// Root of the map from each candidate's address to its stake: what a job keeps of its draw.
pub fn candidates_root(candidates: &[(Address, Wei)]) -> Hash {
    candidates.iter().copied().collect::<Map<Address, Wei>>().root()
}

/// What the proposer gets per unit; `None` where the cap does not cover the basefee.
const fn price(basefee: Wei, max_fee: Wei, max_priority: Wei) -> Option<Wei> {
    match max_fee.checked_sub(basefee) {
        Some(room) if room.get() < max_priority.get() => Some(room),
        Some(_) => Some(max_priority),
        None => None,
    }
}

fn fee_too_low(gas: &str, basefee: Wei, cap: Wei) -> String {
    format!("FeeBelowBasefee: a {gas} costs {basefee} wei, {cap} are offered")
}

/// Price of `ms` of computing, rounded up, at most `most`.
fn price_of_time(per_second: Wei, ms: u64, most: Wei) -> Wei {
    match per_second.checked_mul(u128::from(ms)) {
        Some(thousandfold) => Wei::new(thousandfold.get().div_ceil(1_000)).min(most),
        None => most,
    }
}

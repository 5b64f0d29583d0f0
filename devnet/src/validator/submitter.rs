//! Submits runners' results, commitments, failure reports and evidence against runners to the chain
//! (spec connectivity.md §6, jobs.md §5, §7).
//!
//! Each is submitted as a transaction of the validator's own account, and submitted again when its
//! transaction is lost or priced out while the chain still waits for it. Nothing survives a
//! restart: the job is then dispatched again, and its runner delivers its result or commitment
//! again.

use super::node::Services;
use cowboy_engine::{
    chain::{
        Payload, SignedTransaction, State, Transaction,
        transaction::{
            CommitResult, ReportEquivocation, ReportFailure, RevealResults, SubmitResult,
        },
        transition::{check_commit, check_equivocation, check_failure, check_reveals},
    },
    job::spec::JobStatus,
    primitives::{Address, Hash, Height, SecretKey},
};
use std::collections::BTreeMap;

/// The maximum number of pending submissions; each is for a different open job or committee member.
const MAX_PENDING: usize = 4_096;

/// Blocks within which a transaction that left the mempool should be on the chain.
const PATIENCE: u64 = 2;

/// Something to bring onto the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainSubmission {
    /// The result of a runner that works alone.
    Result(SubmitResult),
    Commit(CommitResult),
    /// Results that a whole committee, or one member, committed to.
    Reveals(RevealResults),
    Failure(ReportFailure),
    Equivocation(ReportEquivocation),
}

/// Identifies a submission by job, kind and runner; an aggregator's submission has no runner.
type Key = (Hash, u8, Option<Address>);

impl ChainSubmission {
    fn key(&self) -> Key {
        match self {
            Self::Result(result) => (result.job_id, 0, None),
            Self::Commit(commit) => (commit.job_id, 1, Some(commit.runner)),
            Self::Reveals(RevealResults { job_id, reveals, aggregator_signature }) => {
                let alone = reveals.first().filter(|_| aggregator_signature.is_none());
                (*job_id, 2, alone.map(|reveal| reveal.runner))
            }
            Self::Failure(report) => (report.job_id, 3, Some(report.runner)),
            Self::Equivocation(report) => (report.job_id, 4, Some(report.runner)),
        }
    }

    fn payload(&self) -> Payload {
        match self.clone() {
            Self::Result(result) => Payload::SubmitResult(result),
            Self::Commit(commit) => Payload::CommitResult(commit),
            Self::Reveals(reveals) => Payload::RevealResults(reveals),
            Self::Failure(report) => Payload::ReportFailure(report),
            Self::Equivocation(report) => Payload::ReportEquivocation(report),
        }
    }

    fn is_wanted(&self, state: &State) -> bool {
        match self {
            Self::Result(result) => {
                state.job(&result.job_id).is_some_and(|job| match &job.status {
                    JobStatus::Assigned(assignment) => {
                        assignment.committee.contains(&result.runner)
                    }
                    _ => false,
                })
            }
            Self::Commit(commit) => check_commit(state, commit).is_ok(),
            Self::Reveals(reveals) => check_reveals(state, state.height().next(), reveals).is_ok(),
            Self::Failure(report) => check_failure(state, report).is_ok(),
            Self::Equivocation(report) => check_equivocation(state, report).is_ok(),
        }
    }
}

/// Submissions on their way to the chain.
pub struct Submitter {
    key: SecretKey,
    services: Services,
    pending: BTreeMap<Key, Pending>,
}

struct Pending {
    submission: ChainSubmission,
    /// The last transaction that carries it, and the head when that transaction was made.
    sent: Option<(SignedTransaction, Height)>,
}

impl Submitter {
    /// An empty submitter. `key` is the validator's key, whose account pays.
    pub const fn new(key: SecretKey, services: Services) -> Self {
        Self { key, services, pending: BTreeMap::new() }
    }

    /// Submits something, and retries until the chain has it.
    pub fn take(&mut self, submission: ChainSubmission) {
        let key = submission.key();
        if self.pending.contains_key(&key) {
            // Its runner was not sure that it had arrived.
            return;
        }
        if self.pending.len() >= MAX_PENDING {
            tracing::warn!(job_id = %key.0, "result dropped: {MAX_PENDING} are waiting");
            return;
        }
        let mut pending = Pending { submission, sent: None };
        // It may be for a block that is not executed here yet, or be on the chain already.
        if pending.submission.is_wanted(&self.services.ledger.newest().state) {
            self.submit(&mut pending);
        }
        self.pending.insert(key, pending);
    }

    /// Takes a new state: forgets submissions that the chain has, and retries lost ones.
    pub fn settle(&mut self, state: &State) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|_, pending| pending.submission.is_wanted(state));
        for pending in pending.values_mut() {
            let again = match &pending.sent {
                None => true,
                Some((sent, _)) if self.waits(sent) => is_priced_out(sent, state),
                Some((_, at)) => state.height().since(*at) > PATIENCE,
            };
            if again {
                self.submit(pending);
            }
        }
        self.pending = pending;
    }

    fn waits(&self, sent: &SignedTransaction) -> bool {
        self.services.mempool.with(|pool| pool.get(&sent.hash()).is_some())
    }

    fn submit(&self, pending: &mut Pending) {
        let newest = self.services.ledger.newest();
        let state = &newest.state;
        let sender = self.key.address();
        // A transaction that still waits is replaced.
        let replaced = pending.sent.as_ref().map(|(sent, _)| sent).filter(|sent| self.waits(sent));
        let nonce = replaced.map_or_else(
            || {
                let next = state.account(&sender).nonce;
                self.services.mempool.with(|pool| pool.next_nonce(&sender, next))
            },
            |sent| sent.transaction.nonce,
        );
        let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
        let payload = pending.submission.payload();
        let kind = payload.name();
        let signed =
            Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload).sign(&self.key);
        let (job_id, ..) = pending.submission.key();
        match self.services.submit(signed.clone()) {
            Ok(transaction) => {
                tracing::debug!(%job_id, kind, %transaction, "submitted");
                pending.sent = Some((signed, state.height()));
            }
            // The next block may change that.
            Err(error) => tracing::warn!(%job_id, kind, %error, "not submitted"),
        }
    }
}

fn is_priced_out(sent: &SignedTransaction, state: &State) -> bool {
    let fees = &sent.transaction.fees;
    fees.max_fee_per_cycle < state.basefee_cycle() || fees.max_fee_per_cell < state.basefee_cell()
}

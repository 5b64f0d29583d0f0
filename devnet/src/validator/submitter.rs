//! Brings results of runners onto the chain (spec connectivity.md §6).
//!
//! A result is submitted as a transaction of the validator's own account, and again whenever its
//! transaction is gone or priced out while the chain still waits for it. Nothing is kept across a
//! restart: the job is then dispatched again, and its runner hands the result over again.

use super::node::Services;
use cowboy_engine::{
    chain::{Payload, SignedTransaction, State, Transaction, transaction::SubmitResult},
    job::spec::JobStatus,
    primitives::{Hash, Height, SecretKey},
};
use std::collections::BTreeMap;

/// Results that wait for the chain at most; each is of a different open job.
const MAX_PENDING: usize = 4_096;

/// Blocks within which a transaction that left the mempool shows in the chain.
const PATIENCE: u64 = 2;

/// Results on their way to the chain.
pub struct Submitter {
    key: SecretKey,
    services: Services,
    pending: BTreeMap<Hash, Pending>,
}

struct Pending {
    result: SubmitResult,
    /// The last transaction that carries it, and the head when it was made.
    sent: Option<(SignedTransaction, Height)>,
}

impl Submitter {
    /// Nothing is on its way. `key` is the validator's, whose account pays.
    pub const fn new(key: SecretKey, services: Services) -> Self {
        Self { key, services, pending: BTreeMap::new() }
    }

    /// Submits a result, and again until the chain has it.
    pub fn take(&mut self, result: SubmitResult) {
        let job_id = result.job_id;
        if self.pending.contains_key(&job_id) {
            // Its runner was not sure that it had arrived.
            return;
        }
        if self.pending.len() >= MAX_PENDING {
            tracing::warn!(%job_id, "result dropped: {MAX_PENDING} are waiting");
            return;
        }
        let mut pending = Pending { result, sent: None };
        self.submit(&mut pending);
        self.pending.insert(job_id, pending);
    }

    /// The chain is at `state`: forgets what it has, submits again what got lost.
    pub fn settle(&mut self, state: &State) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|_, pending| is_wanted(&pending.result, state));
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
        let state = self.services.ledger.newest().state;
        let sender = self.key.address();
        // One that still waits is replaced.
        let replaced = pending.sent.as_ref().map(|(sent, _)| sent).filter(|sent| self.waits(sent));
        let nonce = replaced.map_or_else(
            || {
                let next = state.account(&sender).nonce;
                self.services.mempool.with(|pool| pool.next_nonce(&sender, next))
            },
            |sent| sent.transaction.nonce,
        );
        let (cycle, cell) = (state.basefee_cycle(), state.basefee_cell());
        let payload = Payload::SubmitResult(pending.result.clone());
        let signed =
            Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload).sign(&self.key);
        let job_id = pending.result.job_id;
        match self.services.submit(signed.clone()) {
            Ok(transaction) => {
                tracing::debug!(%job_id, %transaction, "result submitted");
                pending.sent = Some((signed, state.height()));
            }
            // The next block may change that.
            Err(error) => tracing::warn!(%job_id, %error, "result not submitted"),
        }
    }
}

/// Whether the chain waits for this runner's result.
fn is_wanted(result: &SubmitResult, state: &State) -> bool {
    state.job(&result.job_id).is_some_and(|job| match &job.status {
        JobStatus::Assigned(assignment) => assignment.committee.contains(&result.runner),
        _ => false,
    })
}

fn is_priced_out(sent: &SignedTransaction, state: &State) -> bool {
    let fees = &sent.transaction.fees;
    fees.max_fee_per_cycle < state.basefee_cycle() || fees.max_fee_per_cell < state.basefee_cell()
}

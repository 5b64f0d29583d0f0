//! Sends messages to the chain, in order and a bounded number at a time, sends lost ones again, and
//! reports the outcome of each.
//!
//! Only the agent uses its account, so nonces are counted here. A transaction that is not in a
//! block after [`PATIENCE`] blocks is handed to a validator again. One with a used nonce or too low
//! a fee is signed again. A proof waits until its task's commitment is in a block.

use super::{
    WINDOW,
    chain_message::{ChainMessage, ChainPace, MessageKind},
    core::Core,
};
use crate::{
    chain::{ledger::ExecutedBlock, mempool::MempoolError},
    validator::node::Services,
};
use cowboy_engine::{
    chain::{ReceiptStatus, SignedTransaction, State, Transaction, admission::AdmissionError},
    primitives::{Hash, SecretKey, Wei},
    speculation::TaskId,
};
use std::collections::BTreeMap;

/// Blocks within which a transaction should be in the chain.
const PATIENCE: u64 = 4;
/// Fee cap as a multiple of the current price of a cycle or cell; above it the transaction is
/// signed again.
const FEE_MARGIN: u128 = 8;

pub(super) struct Sender {
    key: SecretKey,
    written: u64,
    waiting: BTreeMap<u64, ChainMessage>,
    flying: BTreeMap<u64, Flight>,
}

struct Flight {
    number: u64,
    message: ChainMessage,
    signed: SignedTransaction,
    sent_at: u64,
}

pub(super) enum News {
    Posted(ChainMessage, Hash),
    Lost { message: ChainMessage, submission: u64 },
    Refused(ChainMessage, String),
}

impl Sender {
    pub(super) const fn new(key: SecretKey) -> Self {
        Self { key, written: 0, waiting: BTreeMap::new(), flying: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, message: ChainMessage) {
        self.written += 1;
        self.waiting.insert(self.written, message);
    }

    fn again(&mut self, flight: Flight) {
        self.waiting.insert(flight.number, ChainMessage { doubtful: true, ..flight.message });
    }

    /// Whether the chain may lack something that this message builds on: an earlier message of the
    /// same task, or the creation of or commitment to another task, is still on its way.
    fn is_early(&self, number: u64, message: &ChainMessage) -> bool {
        let waiting = self.waiting.range(..number).map(|(_, message)| message);
        let flying = self.flying.values().filter(|flight| flight.number < number);
        let mut before = waiting.chain(flying.map(|flight| &flight.message));
        before.any(|before| {
            // A task comes after its parents, and a commitment after theirs.
            let builds_on = before.kind == MessageKind::Create
                || (before.kind == MessageKind::Commit && message.kind == MessageKind::Commit);
            before.task == message.task || builds_on
        })
    }

    /// Whether an earlier message of the same task is still on its way, which will change the
    /// chain's state for the task.
    fn has_earlier(&self, number: u64, task: &TaskId) -> bool {
        let waiting = self.waiting.range(..number).any(|(_, message)| message.task == *task);
        let mut flying = self.flying.values().filter(|flight| flight.number < number);
        waiting || flying.any(|flight| flight.message.task == *task)
    }

    /// Whether the commitment to a task has not reached the chain yet. A proof that arrives before
    /// it would be refused, and one that meets another commitment would cost its bond.
    fn is_uncommitted(&self, task: &TaskId) -> bool {
        let of_task = |message: &ChainMessage| {
            let leads = matches!(
                message.kind,
                MessageKind::Create | MessageKind::Claim { .. } | MessageKind::Commit
            );
            message.task == *task && leads
        };
        self.waiting.values().any(of_task) || self.flying.values().any(|f| of_task(&f.message))
    }

    pub(super) fn block(&mut self, core: &Core, block: &ExecutedBlock) -> Vec<News> {
        let (mut news, agent) = (Vec::new(), self.key.address());
        let state = &block.execution.state;
        for receipt in &block.execution.receipts {
            if receipt.sender != agent {
                continue;
            }
            let flying = self.flying.iter();
            let of = |(_, flight): &(&u64, &Flight)| flight.signed.hash() == receipt.transaction;
            let Some(nonce) = flying.clone().find(of).map(|(nonce, _)| *nonce) else { continue };
            let Some(flight) = self.flying.remove(&nonce) else { continue };
            match &receipt.status {
                ReceiptStatus::Success => {}
                // An earlier process sent it, and it has taken effect.
                ReceiptStatus::Failed(_) if core.is_answered(&flight.message, state) => {}
                // It arrived before a message that it builds on, which lost its nonce.
                ReceiptStatus::Failed(_) if self.is_early(flight.number, &flight.message) => {
                    self.again(flight);
                }
                ReceiptStatus::Failed(error) => {
                    news.push(News::Refused(flight.message, error.clone()));
                }
                // Its nonce or its fee was wrong: it is sent again.
                ReceiptStatus::Skipped(_) => self.again(flight),
            }
        }
        // Nonces used in a block that was not seen here: the state shows whether they took effect.
        let next = state.account(&agent).nonce;
        let later = self.flying.split_off(&next);
        for flight in std::mem::replace(&mut self.flying, later).into_values() {
            self.again(flight);
        }
        news
    }

    pub(super) fn deliver(
        &mut self,
        core: &Core,
        state: &State,
        validators: &[Services],
        pace: ChainPace,
    ) -> Vec<News> {
        let (mut news, height) = (Vec::new(), state.height().get());
        let stale = |flight: &Flight| height.saturating_sub(flight.sent_at) > PATIENCE;
        let again: Vec<u64> =
            self.flying.iter().filter(|(_, f)| stale(f)).map(|(nonce, _)| *nonce).collect();
        for nonce in again {
            let Some(flight) = self.flying.get_mut(&nonce) else { continue };
            let fees = flight.signed.transaction.fees;
            let dear = fees.max_fee_per_cycle < state.basefee_cycle()
                || fees.max_fee_per_cell < state.basefee_cell();
            if dear && let Some(signed) = sign(&self.key, core, &flight.message, state, nonce, pace)
            {
                flight.signed = signed;
            }
            flight.sent_at = height;
            // All validators: the one that had it may be cut off.
            for services in validators {
                if let Err(error) = services.submit(flight.signed.clone()) {
                    tracing::debug!(%error, nonce, "not handed to a validator again");
                }
            }
        }
        let mut nonce = state.account(&self.key.address()).nonce;
        if let Some((last, _)) = self.flying.last_key_value() {
            nonce = nonce.max(last + 1);
        }
        let mut held = Vec::new();
        while self.flying.len() < WINDOW {
            let Some((number, message)) = self.waiting.pop_first() else { break };
            if matches!(message.kind, MessageKind::Complete { .. })
                && self.is_uncommitted(&message.task)
            {
                held.push((number, message));
                continue;
            }
            let first = !self.has_earlier(number, &message.task);
            if message.doubtful && first && core.is_answered(&message, state) {
                continue;
            }
            let Some(signed) = sign(&self.key, core, &message, state, nonce, pace) else {
                continue;
            };
            match submit(validators, &signed) {
                Ok(()) => {
                    news.push(News::Posted(message, signed.hash()));
                    self.flying.insert(nonce, Flight { number, message, signed, sent_at: height });
                    nonce += 1;
                }
                Err(Some(error)) if is_final(&error) => {
                    news.push(News::Refused(message, error.to_string()));
                }
                Err(error) => {
                    let error = error.map(|error| error.to_string());
                    tracing::debug!(error, task = %message.task, "no validator takes it now");
                    match message.kind {
                        MessageKind::Complete { submission, .. } => {
                            news.push(News::Lost { message, submission });
                        }
                        _ => drop(self.waiting.insert(number, message)),
                    }
                    break;
                }
            }
        }
        self.waiting.extend(held);
        news
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || !self.flying.is_empty()
    }
}

fn sign(
    key: &SecretKey,
    core: &Core,
    message: &ChainMessage,
    state: &State,
    nonce: u64,
    pace: ChainPace,
) -> Option<SignedTransaction> {
    let payload = core.payload(message, state, pace)?;
    let dear = |price: Wei| price.saturating_mul(FEE_MARGIN);
    let (cycle, cell) = (dear(state.basefee_cycle()), dear(state.basefee_cell()));
    let transaction = Transaction::with_limits(state.chain_id(), nonce, cycle, cell, payload);
    Some(transaction.sign(key))
}

/// Hands a transaction to the first validator that accepts it. Fails with the last validator's
/// error, or with `None` if no validator runs.
fn submit(validators: &[Services], signed: &SignedTransaction) -> Result<(), Option<MempoolError>> {
    let mut last = None;
    for services in validators {
        match services.submit(signed.clone()) {
            Ok(_) => return Ok(()),
            Err(error) => last = Some(error),
        }
    }
    Err(last)
}

const fn is_final(error: &MempoolError) -> bool {
    matches!(
        error,
        MempoolError::TooLarge { .. }
            | MempoolError::Admission(
                AdmissionError::InsufficientBalance(_) | AdmissionError::LimitTooLow { .. }
            )
    )
}

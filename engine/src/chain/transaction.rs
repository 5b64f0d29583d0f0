//! Transactions: the messages that accounts sign (spec chain.md, "Transactions").

mod excuse;
mod payload;

pub use excuse::Excuse;
pub use payload::{
    ActAs, ActedPayload, AdvanceTime, CallActor, CancelJob, CancelTimer, CommitResult, DeployActor,
    DeployPython, ExtendTimer, ForgetMark, GrantEntitlement, InitCall, MAX_SALT, Payload,
    RegisterRunner, RemoveValidator, ReportEquivocation, ReportFailure, ReturnToMark, Reveal,
    RevealResults, RevokeEntitlement, SetBalance, SetCode, SetParameter, SetPhase, SetState,
    SignedCommitment, SlashRunner, SubmitResult, Transfer, TransferOwnership, UpdateRunner,
    UpdateTimerConfig,
};

use crate::{
    actor::Budget,
    fees::meter,
    primitives::{
        Address, Cells, Cycles, Hash, SecretKey, Signature, Wei,
        codec::{Decode, DecodeError, Encode, Reader, Writer, from_slice, to_vec},
        keccak256,
    },
    record,
};
use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

record! {
    /// The most the sender pays per unit of gas.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Fees {
        /// Wei per cycle, including priority.
        pub max_fee_per_cycle: Wei,
        /// Wei per cycle for the proposer, included in `max_fee_per_cycle`.
        pub max_priority_per_cycle: Wei,
        /// Wei per cell, including priority.
        pub max_fee_per_cell: Wei,
        /// Wei per cell for the proposer, included in `max_fee_per_cell`.
        pub max_priority_per_cell: Wei,
    }
}

/// An unsigned transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub chain_id: u64,
    pub nonce: u64,
    pub fees: Fees,
    pub cycle_limit: Cycles,
    pub cell_limit: Cells,
    /// The most that timers scheduled by it may ever take from the sender; `None`: nothing.
    pub timer_allowance: Option<Wei>,
    pub payload: Payload,
}
record!(Transaction { chain_id, nonce, fees, cycle_limit, cell_limit, timer_allowance, payload });

impl Transaction {
    /// The hash that the sender signs.
    pub fn digest(&self) -> Hash {
        keccak256(&[b"cowboy-transaction/v1", &to_vec(self)])
    }

    pub fn sign(self, key: &SecretKey) -> SignedTransaction {
        let signature = key.sign(&self.digest());
        SignedTransaction::new(self, signature)
    }

    /// A transaction with the lowest sufficient limits that pays up to twice the given basefees
    /// plus one wei of priority per cycle, so that it stays valid while they rise. Metered payloads
    /// need higher limits: see [`buying`](Self::buying).
    pub fn with_limits(
        chain_id: u64,
        nonce: u64,
        basefee_cycle: Wei,
        basefee_cell: Wei,
        payload: Payload,
    ) -> Self {
        let fees = Fees {
            max_fee_per_cycle: basefee_cycle.saturating_mul(2).saturating_add(Wei::new(1)),
            max_priority_per_cycle: Wei::new(1),
            max_fee_per_cell: basefee_cell.saturating_mul(2),
            max_priority_per_cell: Wei::ZERO,
        };
        let (cycle_limit, cell_limit) = (Cycles::new(u64::MAX), Cells::new(u64::MAX));
        // Limits first encode at their longest, so the final cost is never too low.
        let timer_allowance = Some(Wei::new(u128::MAX));
        let mut sized =
            Self { chain_id, nonce, fees, cycle_limit, cell_limit, timer_allowance, payload };
        let bytes = to_vec(&sized).len() + SIGNATURE_OVERHEAD;
        (sized.cycle_limit, sized.cell_limit) = meter::total(bytes, sized.payload.charge());
        sized.timer_allowance = None;
        sized
    }

    pub const fn allowing(mut self, timer_allowance: Wei) -> Self {
        self.timer_allowance = Some(timer_allowance);
        self
    }

    /// The same transaction with limits raised by `budget`, the usage allowed to an actor's
    /// deployment or call, up to what fits in a block.
    pub fn buying(mut self, budget: Budget) -> Self {
        let raised = |limit: u64, by: u64, most: u64| limit.saturating_add(by).min(most);
        let cycles = raised(self.cycle_limit.get(), budget.cycles, meter::MAX_BLOCK_CYCLES);
        let cells = raised(self.cell_limit.get(), budget.cells, meter::MAX_BLOCK_CELLS);
        (self.cycle_limit, self.cell_limit) = (Cycles::new(cycles), Cells::new(cells));
        self
    }
}

/// Bytes that a signed transaction adds to its transaction: the map, its two keys and the
/// signature's head and bytes.
const SIGNATURE_OVERHEAD: usize = 1 + 10 + 2 + 65 + 12;

/// Where the signature's bytes begin in an encoded signed transaction.
const SIGNATURE_AT: usize = 1 + 10 + 2;

/// A transaction and its sender's signature, from which the sender's address is recovered.
///
/// Clones share encoded bytes, hash and sender, which are computed once: recovering a key costs
/// more than all the rest of a transfer.
#[derive(Clone, Debug)]
pub struct SignedTransaction(Arc<Signed>);

/// The target of a [`SignedTransaction`].
#[derive(Debug)]
pub struct Signed {
    pub transaction: Transaction,
    pub signature: Signature,
    form: OnceLock<EncodedForm>,
    sender: OnceLock<Result<Address, BadSignature>>,
}

#[derive(Debug)]
struct EncodedForm {
    hash: Hash,
    bytes: Box<[u8]>,
}

impl Deref for SignedTransaction {
    type Target = Signed;

    fn deref(&self) -> &Signed {
        &self.0
    }
}

impl PartialEq for SignedTransaction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.signature == other.signature && self.transaction == other.transaction)
    }
}

impl Eq for SignedTransaction {}

impl Encode for SignedTransaction {
    fn encode(&self, w: &mut Writer) {
        w.raw(self.bytes());
    }
}

struct SignedForm {
    transaction: Transaction,
    signature: Signature,
}
record!(SignedForm { transaction, signature });

impl Decode for SignedTransaction {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        SignedForm::decode(r).map(|form| Self::new(form.transaction, form.signature))
    }
}

/// The signature does not recover a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("BadSignature: the transaction's signature recovers no key")]
pub struct BadSignature;

impl SignedTransaction {
    /// A transaction with a signature that is not checked yet.
    pub fn new(transaction: Transaction, signature: Signature) -> Self {
        let (form, sender) = (OnceLock::new(), OnceLock::new());
        Self(Arc::new(Signed { transaction, signature, form, sender }))
    }

    fn form(&self) -> &EncodedForm {
        self.form.get_or_init(|| {
            let mut w = Writer::new();
            w.record(&[("signature", &self.signature), ("transaction", &self.transaction)]);
            let bytes = w.finish();
            EncodedForm { hash: keccak256(&[&bytes]), bytes: bytes.into() }
        })
    }

    pub fn hash(&self) -> Hash {
        self.form().hash
    }

    /// The transaction as it is sent and stored.
    pub fn bytes(&self) -> &[u8] {
        &self.form().bytes
    }

    /// Its encoded length in bytes, which is also the basis of its cells.
    pub fn size(&self) -> usize {
        self.bytes().len()
    }

    pub fn sender(&self) -> Result<Address, BadSignature> {
        *self.0.sender.get_or_init(|| {
            self.signature
                .recover(&self.transaction.digest())
                .map(|key| key.address())
                .ok_or(BadSignature)
        })
    }

    /// The least cycles and cells it uses: its exact price if that is fixed, the intrinsic part if
    /// it is metered.
    pub fn least(&self) -> (Cycles, Cells) {
        meter::total(self.size(), self.transaction.payload.charge())
    }

    /// The cycles and cells set aside for it, in its block and at its sender: its exact price if
    /// that is fixed, its limits if it is metered. It never uses more.
    pub fn reserve(&self) -> (Cycles, Cells) {
        match self.transaction.payload.is_metered() {
            true => (self.transaction.cycle_limit, self.transaction.cell_limit),
            false => self.least(),
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes().to_vec()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        from_slice(bytes)
    }
}

/// Transactions that were decoded before.
pub trait KnownTransactions {
    fn find(&self, signature: &Signature) -> Option<SignedTransaction>;

    /// The known copy of a transaction, or itself if it is new.
    fn copy_of(&self, transaction: SignedTransaction) -> SignedTransaction;
}

/// Decodes every transaction.
pub struct NoneKnown;

impl KnownTransactions for NoneKnown {
    fn find(&self, _: &Signature) -> Option<SignedTransaction> {
        None
    }

    fn copy_of(&self, transaction: SignedTransaction) -> SignedTransaction {
        transaction
    }
}

/// Encodes a list of transactions.
pub fn list_to_bytes(transactions: &[SignedTransaction]) -> Vec<u8> {
    let mut w = Writer::new();
    w.list(transactions.len());
    for transaction in transactions {
        transaction.encode(&mut w);
    }
    w.finish()
}

/// Decodes a list of transactions that fills `bytes` in its only form.
pub fn list_from_bytes(
    bytes: &[u8],
    known: &impl KnownTransactions,
) -> Result<Vec<SignedTransaction>, DecodeError> {
    let transactions = read_list(&mut Reader::new(bytes), known)?;
    if list_to_bytes(&transactions) != bytes {
        return Err(DecodeError::NotDeterministic);
    }
    Ok(transactions)
}

/// Reads a list of transactions. One whose bytes are those of a known one is not decoded.
pub(super) fn read_list(
    r: &mut Reader<'_>,
    known: &impl KnownTransactions,
) -> Result<Vec<SignedTransaction>, DecodeError> {
    let len = r.list(r.remaining())?;
    // The list grows as its items arrive: they are larger in memory than one byte each.
    let mut transactions = Vec::new();
    for _ in 0..len {
        let signature = r.rest().get(SIGNATURE_AT..).and_then(<[u8]>::first_chunk);
        let candidate = signature.and_then(|bytes| known.find(&Signature(*bytes)));
        let transaction = match candidate {
            Some(candidate) if r.skip_if(candidate.bytes()) => candidate,
            _ => known.copy_of(SignedTransaction::decode(r)?),
        };
        transactions.push(transaction);
    }
    Ok(transactions)
}

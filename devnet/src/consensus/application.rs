//! Proposes blocks and decides which blocks get a vote (spec chain.md, "Blocks and consensus").
//!
//! **Proposing** on a parent: wait for the parent's certificate, at most `cert_wait`; pace to the
//! block time, unless the pace is lifted ([`FastForward`]), for a while or by a transaction that
//! waits; embed every certificate held for the parent and its open ancestors; execute up to the
//! newest certified ancestor, whose state root the header names; take transactions from the mempool
//! that are not in the blocks in between.
//!
//! **Verifying**: a block is checked against everything that depends on it and its ancestors alone,
//! and a block that fails is refused for good. A block whose timestamp is more than [`MAX_LEAD`]
//! ahead of the validator's clock waits until it is not; a power may have moved the clocks of all.
//! A timestamp only one millisecond after the parent's never waits, so that a clock that was set
//! back cannot stop the chain. A certificate that the validator holds bit for bit is not verified
//! again. A new one that verifies is given to the archive, so that a validator that missed the
//! votes learns from the block that its parent is final. Last, the header's state root is compared
//! with the validator's own: a different one is refused and raises an alarm. While the validator
//! has not executed that far it gives no verdict, and the view passes without its vote.

use super::{
    Context, Digest, Finalization,
    block::{Block, MAX_TRANSACTION_BYTES},
    certificate,
    held::Held,
    hurry::Hurry,
    presence::Sightings,
    scheme::{Scheme, Schemes},
    timing::{FastForward, Pace},
};
use crate::chain::{
    ledger::{Ledger, LedgerError, MAX_AHEAD},
    mempool::Mempool,
};
use commonware_consensus::{
    CertifiableBlock as _, Reporter as _,
    marshal::{ancestry::Ancestry, core, standard::Standard},
    simplex::types::Activity,
};
use commonware_cryptography::Digested;
use commonware_macros::select;
use commonware_runtime::{Clock, Spawner};
use cowboy_engine::{
    chain::{
        self, Certificate, Executed, Header, SignedTransaction, State,
        block::{CertificateError, certificates_root, certify, transactions_root},
        transaction::BadSignature,
    },
    fees::meter,
    primitives::{Address, Cells, Cycles, Hash, Height},
};
use futures::{FutureExt as _, StreamExt as _};
use rand_core::CryptoRng;
use std::{
    collections::BTreeMap,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tracing::{Instrument as _, Span};

/// Maximum lead of a block's timestamp over a validator's clock, unless it is the lowest that may
/// follow its parent's.
pub const MAX_LEAD: Duration = Duration::from_secs(5);
/// How long a proposer waits for its execution of the newest certified ancestor; then it proposes
/// without the certificates beyond its executed chain.
const EXECUTION_WAIT: Duration = Duration::from_millis(150);

/// The archive of blocks.
pub type Marshal = core::Mailbox<Scheme, Standard<Block>>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum BlockRefusal {
    #[error("its header names another round, proposer or parent than its proposal")]
    Context,
    #[error("height {got} after {parent}")]
    Height { got: Height, parent: Height },
    #[error("timestamp {got} ms after {parent} ms")]
    Timestamp { got: u64, parent: u64 },
    #[error("subset epoch {got}, expected {expected}")]
    SubsetEpoch { got: u64, expected: u64 },
    #[error(transparent)]
    Candidates(#[from] CertificateError),
    #[error("open ancestors differ from those its certificates leave")]
    Open,
    #[error("certificate for {block}: {error}")]
    Certificate { block: Hash, error: certificate::CertificateError },
    #[error("certificate for {block} of epoch {epoch}, which has not begun")]
    Epoch { block: Hash, epoch: u64 },
    #[error(
        "it names block {} (state root {}) as executed where {expected} is the newest certified \
         ancestor",
        .got.height,
        .got.state_root
    )]
    Executed { got: Executed, expected: Height },
    #[error("state root of {0} differs from the one computed here")]
    StateRoot(Height),
    #[error("transaction {hash} is for chain {got:#x}")]
    Chain { hash: Hash, got: u64 },
    #[error("transaction {hash}: {error}")]
    Signature { hash: Hash, error: BadSignature },
    #[error("transaction {0} uses more than it buys")]
    Limits(Hash),
    #[error("its transactions use {cycles} cycles and {cells} cells")]
    BlockLimits { cycles: Cycles, cells: Cells },
    #[error("{0} bytes of transactions")]
    Bytes(usize),
}

/// Whether consensus has asked for a block, or about one, since the validator started. It does so
/// after it has read its journals. Clones share the flag.
#[derive(Clone, Default)]
pub struct TakesPart(Arc<AtomicBool>);

impl TakesPart {
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The application of one validator. Clones share their state.
#[derive(Clone)]
pub struct Application {
    pub(super) schemes: Schemes,
    pub(super) held: Held,
    pub(super) ledger: Ledger,
    pub(super) mempool: Mempool,
    pub(super) marshal: Marshal,
    pub(super) sightings: Sightings,
    pub(super) pace: Pace,
    pub(super) fast_forward: FastForward,
    pub(super) hurry: Hurry,
    pub(super) takes_part: TakesPart,
    pub(super) span: Span,
}

/// The blocks between the executed chain and a new block, oldest first.
struct Lineage(Vec<Arc<chain::Block>>);

impl<E: Clock + Spawner + CryptoRng> commonware_consensus::Application<E> for Application {
    type SigningScheme = Scheme;
    type Context = Context;
    type Block = Block;
    type Input = ();

    async fn propose(
        &mut self,
        (runtime, context): (E, Context),
        ancestry: impl Ancestry<Block>,
        (): (),
    ) -> Option<Digested<Block>> {
        self.takes_part.set();
        let span = self.span.clone();
        self.propose_block(&runtime, &context, ancestry).instrument(span).await
    }

    async fn verify(
        &mut self,
        (runtime, context): (E, Context),
        ancestry: impl Ancestry<Block>,
    ) -> bool {
        self.takes_part.set();
        // Another validator has proposed: its votes must not be contradicted after a power failure.
        self.hurry.set(false);
        let span = self.span.clone();
        self.verify_block(runtime, &context, ancestry).instrument(span).await
    }
}

impl Application {
    async fn propose_block<E: Clock + Spawner>(
        &self,
        runtime: &E,
        context: &Context,
        mut ancestry: impl Ancestry<Block>,
    ) -> Option<Digested<Block>> {
        let above = ancestry.clone();
        let parent = ancestry.next().await?;
        let start = runtime.current();
        if parent.inner().header().height > Height::GENESIS {
            select! {
                _ = self.held.wait(context.parent.1) => {},
                () = runtime.sleep_until(start + self.pace.cert_wait) => {},
            }
        }
        if !self.pace.block_time.is_zero() {
            let ahead = self.ledger.newest().state.ahead_ms();
            let made = parent.inner().header().timestamp_ms.saturating_sub(ahead);
            let due = since_epoch(made) + self.pace.block_time;
            let height = parent.inner().header().height.next();
            let is_spared = self.fast_forward.spares(height, start).now_or_never().is_some();
            self.hurry.set(is_spared && self.is_alone(context));
            select! {
                () = self.fast_forward.spares(height, start) => {},
                () = self.demanded(above.clone()) => {},
                () = runtime.sleep_until(due.min(start + self.pace.block_time)) => {},
            }
        }

        let mut certificates = self.certificates(parent.inner().header(), context.parent.1).await;
        let lineage = self.lineage(above).await?;
        let executing = self.execute_up_to(runtime, &lineage, &certificates);
        select! {
            result = executing => {
                if let Err(error) = result {
                    tracing::error!(%error, "a certified ancestor cannot be executed");
                    return None;
                }
            },
            () = runtime.sleep(EXECUTION_WAIT) => {},
        }
        let newest = self.ledger.newest();
        certificates.retain(|(height, _)| *height <= newest.state.height());

        let block = self.build(runtime, context, parent.inner(), certificates, &lineage)?;
        self.sightings.saw(&block);
        Some(block.digested())
    }

    /// Whether the committee of this round has one validator.
    fn is_alone(&self, context: &Context) -> bool {
        let scheme = self.schemes.of(context.round.epoch());
        scheme.is_some_and(|scheme| scheme.committee().validators().len() == 1)
    }

    /// Resolves once transactions get blocks at once and one waits that is not in the blocks above.
    async fn demanded(&self, above: impl Ancestry<Block>) {
        let Some(lineage) = self.lineage(above).await else { return pending().await };
        let mut accepted = self.mempool.accepted();
        loop {
            self.fast_forward.automines().await;
            if !self.transactions(&self.ledger.newest().state, &lineage).is_empty() {
                return;
            }
            if accepted.changed().await.is_err() {
                return pending().await;
            }
        }
    }

    async fn verify_block<E: Clock + Spawner + CryptoRng>(
        &mut self,
        mut runtime: E,
        context: &Context,
        mut ancestry: impl Ancestry<Block>,
    ) -> bool {
        let Some(block) = ancestry.next().await else { return false };
        let above = ancestry.clone();
        let Some(parent) = ancestry.next().await else { return false };
        let (block, parent) = (block.inner().clone(), parent.inner().clone());
        self.sightings.saw(&block);
        let header = block.header();
        if let Err(refusal) = self.check(&mut runtime, context, &block, &parent, above).await {
            let (height, hash) = (header.height, block.chain().hash());
            tracing::warn!(%height, %hash, reason = %refusal, "block refused");
            return false;
        }
        // The lowest valid timestamp never waits: the clock may have been set back.
        if header.timestamp_ms > parent.header().timestamp_ms.saturating_add(1) {
            let made = header.timestamp_ms.saturating_sub(self.ahead_ms(header.executed.height));
            let earliest = since_epoch(made).checked_sub(MAX_LEAD);
            if let Some(earliest) = earliest.filter(|earliest| *earliest > runtime.current()) {
                runtime.sleep_until(earliest).await;
            }
        }
        true
    }

    /// How far the timestamp of a block that names `executed` is ahead of its proposer's clock.
    fn ahead_ms(&self, executed: Height) -> u64 {
        let named = self.ledger.at(executed).unwrap_or_else(|| self.ledger.newest());
        named.state.ahead_ms()
    }

    async fn check<E: Clock + Spawner + CryptoRng>(
        &mut self,
        runtime: &mut E,
        context: &Context,
        block: &Block,
        parent: &Block,
        above: impl Ancestry<Block>,
    ) -> Result<(), BlockRefusal> {
        let certified = check_form(block, parent, context)?;
        let got = block.header().subset_epoch;
        match self.subset_epoch(parent.header()) {
            Some(expected) if got != expected => {
                return Err(BlockRefusal::SubsetEpoch { got, expected });
            }
            Some(_) => {}
            // Only a validator that is behind can lack this epoch's committee: no verdict.
            None => pending().await,
        }
        self.check_certificates(runtime, block, context)?;
        self.check_transactions(runtime, block).await?;
        self.check_executed(runtime, block, above, &certified).await
    }

    /// The certificates that a child of `parent` can carry, ascending.
    async fn certificates(&self, parent: &Header, digest: Digest) -> Vec<(Height, Certificate)> {
        let mut certificates = Vec::new();
        for candidate in parent.candidates(certificate::hash(digest)) {
            let digest = certificate::digest(candidate.hash);
            let held = match self.held.get(&digest) {
                Some(held) => Some(held),
                // After a restart the archive has certificates that this process has not seen.
                None => {
                    let height = commonware_consensus::types::Height::new(candidate.height.get());
                    let archived = self.marshal.get_finalization(height).await;
                    archived.filter(|archived| archived.proposal.payload == digest)
                }
            };
            if let Some(held) = held {
                certificates.push((candidate.height, certificate::from_finalization(&held)));
            }
        }
        certificates
    }

    /// Collects the blocks of `ancestry` (newest first) down to the executed chain. `None` if an
    /// ancestor is unavailable, or the validator is so far behind that it should not propose.
    async fn lineage(&self, mut ancestry: impl Ancestry<Block>) -> Option<Lineage> {
        let executed = self.ledger.newest().state.height();
        let mut blocks = Vec::new();
        loop {
            let height = |block: &Digested<Block>| block.inner().header().height;
            let behind = ancestry.peek().is_some_and(|block| height(block) <= executed);
            if behind {
                break;
            }
            let block = ancestry.next().await?;
            let height = height(&block);
            if height <= executed {
                break;
            }
            if height.since(executed) > MAX_AHEAD {
                return None;
            }
            blocks.push(block.inner().chain().clone());
        }
        blocks.reverse();
        Some(Lineage(blocks))
    }

    /// Executes the blocks of `lineage` up to the newest that `certificates` prove final.
    async fn execute_up_to<E: Clock + Spawner>(
        &self,
        runtime: &E,
        lineage: &Lineage,
        certificates: &[(Height, Certificate)],
    ) -> Result<(), LedgerError> {
        let Some((newest, _)) = certificates.last() else { return Ok(()) };
        self.execute(runtime, lineage, *newest).await
    }

    /// Executes the blocks of `lineage` up to `height`, which a certificate proves final.
    async fn execute<E: Clock + Spawner>(
        &self,
        runtime: &E,
        lineage: &Lineage,
        height: Height,
    ) -> Result<(), LedgerError> {
        let final_blocks = lineage.0.iter().filter(|block| block.header.height <= height);
        let blocks: Vec<_> = final_blocks.cloned().collect();
        if blocks.is_empty() {
            return Ok(());
        }
        let ledger = self.ledger.clone();
        // Executing a full block takes long, so it runs on a thread that may block.
        let task = runtime.child("execute").shared(true).spawn(move |runtime| async move {
            blocks.iter().try_for_each(|block| ledger.execute(block, now_ms(&runtime)))
        });
        match task.await {
            // The archive is delivering and will get there by itself, or the validator is ending.
            Ok(Err(LedgerError::TooFarAhead { .. })) | Err(_) => Ok(()),
            Ok(result) => result,
        }
    }

    fn build<E: Clock>(
        &self,
        runtime: &E,
        context: &Context,
        parent: &Block,
        certificates: Vec<(Height, Certificate)>,
        lineage: &Lineage,
    ) -> Option<Block> {
        let header = parent.header();
        let parent_hash = certificate::hash(context.parent.1);
        let executed = self.executed(header, certificates.last().map(|(height, _)| *height))?;
        let certificates: Vec<_> =
            certificates.into_iter().map(|(_, certificate)| certificate).collect();
        let candidates = header.candidates(parent_hash);
        let (_, open) = certify(&candidates, certificates.iter().map(|c| c.block))
            .expect("the certificates are those of candidates, ascending");
        // The newest state of the parent or one of its ancestors.
        let newest = self.ledger.newest();
        let base = if newest.state.height() <= header.height {
            newest
        } else {
            self.ledger.at(header.height)?
        };
        let transactions = self.transactions(&base.state, lineage);
        let height = header.height.next();
        let subset_epoch = self.subset_epoch(header)?;
        let mut proposer = [0; 32];
        proposer.copy_from_slice(context.leader.as_ref());
        let now = now_ms(runtime).saturating_add(self.ahead_ms(executed.height));
        let timestamp_ms = now.max(header.timestamp_ms.saturating_add(1));
        let block = chain::Block {
            header: Header {
                height,
                parent: parent_hash,
                round: chain::Round {
                    epoch: context.round.epoch().get(),
                    view: context.round.view().get(),
                    parent_view: context.parent.0.get(),
                },
                proposer,
                timestamp_ms,
                subset_epoch,
                transactions_root: transactions_root(&transactions),
                certificates_root: certificates_root(&certificates),
                open,
                executed,
            },
            certificates,
            transactions,
        };
        Some(Block::new(block).expect("the leader is a validator, its key is a key"))
    }

    /// The subset epoch of a child of `parent`. Every state from the end of the previous consensus
    /// epoch on determines it; `None` if this validator lacks such a state.
    fn subset_epoch(&self, parent: &Header) -> Option<u64> {
        self.ledger.newest().state.subset_epoch_at(parent.height.next())
    }

    /// The executed ancestor that a child of `parent` names when its newest embedded certificate is
    /// for `certified`. `None` if this validator does not have that state.
    fn executed(&self, parent: &Header, certified: Option<Height>) -> Option<Executed> {
        match certified.filter(|height| *height > parent.executed.height) {
            None => Some(parent.executed),
            Some(height) => {
                let state_root = self.ledger.at(height)?.root;
                Some(Executed { height, state_root })
            }
        }
    }

    /// Transactions to execute on `base` after the blocks of `lineage` above it.
    fn transactions(&self, base: &State, lineage: &Lineage) -> Vec<SignedTransaction> {
        let mut in_flight: BTreeMap<Address, u64> = BTreeMap::new();
        let beyond = lineage.0.iter().filter(|block| block.header.height > base.height());
        for transaction in beyond.flat_map(|block| &block.transactions) {
            if let Ok(sender) = transaction.sender() {
                let nonce = in_flight.entry(sender).or_default();
                *nonce = (*nonce).max(transaction.transaction.nonce);
            }
        }
        self.mempool.with(|pool| pool.pick(base, &in_flight))
    }

    fn check_certificates<E: Clock + CryptoRng>(
        &mut self,
        runtime: &mut E,
        block: &Block,
        context: &Context,
    ) -> Result<(), BlockRefusal> {
        for embedded in &block.chain().certificates {
            let finalization = certificate::to_finalization(embedded);
            let epoch = finalization.proposal.round.epoch();
            let scheme = self.schemes.of(epoch).filter(|_| epoch <= context.round.epoch());
            let Some(scheme) = scheme else {
                return Err(BlockRefusal::Epoch { block: embedded.block, epoch: epoch.get() });
            };
            let held = self.held.get(&finalization.proposal.payload);
            if held.as_ref() == Some(&finalization) {
                continue;
            }
            if !scheme.verify_beyond(runtime, &finalization, held.as_ref()) {
                let error = certificate::verify(scheme.committee(), embedded).err();
                // If a batch fails, one of its votes fails.
                let got = embedded.votes.len();
                let expected = scheme.committee().quorum();
                let error = error.unwrap_or(certificate::CertificateError::Votes { got, expected });
                return Err(BlockRefusal::Certificate { block: embedded.block, error });
            }
            if held.is_none() {
                self.learn(finalization);
            }
        }
        Ok(())
    }

    /// Gives the archive a finalization that this validator has not seen happen.
    fn learn(&mut self, finalization: Finalization) {
        self.held.insert(finalization.clone());
        self.marshal.report(Activity::Finalization(finalization));
    }

    async fn check_transactions<E: Spawner>(
        &self,
        runtime: &E,
        block: &Block,
    ) -> Result<(), BlockRefusal> {
        let chain_block = block.chain().clone();
        if chain_block.transactions.is_empty() {
            return Ok(());
        }
        let chain_id = self.ledger.head().chain_id();
        let task = runtime.child("signatures").shared(true).spawn(move |_| async move {
            let (mut cycles, mut cells, mut bytes) = (Cycles::ZERO, Cells::ZERO, 0);
            for signed in &chain_block.transactions {
                let (hash, transaction) = (signed.hash(), &signed.transaction);
                if transaction.chain_id != chain_id {
                    return Err(BlockRefusal::Chain { hash, got: transaction.chain_id });
                }
                let (least_cycles, least_cells) = signed.least();
                if least_cycles > transaction.cycle_limit || least_cells > transaction.cell_limit {
                    return Err(BlockRefusal::Limits(hash));
                }
                let (most_cycles, most_cells) = signed.reserve();
                cycles = cycles.saturating_add(most_cycles);
                cells = cells.saturating_add(most_cells);
                bytes += signed.size();
                if cycles.get() > meter::MAX_BLOCK_CYCLES || cells.get() > meter::MAX_BLOCK_CELLS {
                    return Err(BlockRefusal::BlockLimits { cycles, cells });
                }
                signed.sender().map_err(|error| BlockRefusal::Signature { hash, error })?;
            }
            if bytes > MAX_TRANSACTION_BYTES {
                return Err(BlockRefusal::Bytes(bytes));
            }
            Ok(())
        });
        match task.await {
            Ok(result) => result,
            // The task ends early only if the whole validator ends: no verdict.
            Err(_) => pending().await,
        }
    }

    /// Compares the header's root with the one computed here as soon as that is possible.
    /// `certified` are the heights that the block's certificates prove final.
    async fn check_executed<E: Clock + Spawner>(
        &self,
        runtime: &E,
        block: &Block,
        above: impl Ancestry<Block>,
        certified: &[Height],
    ) -> Result<(), BlockRefusal> {
        let executed = block.header().executed;
        // An unchanged root was checked with the block that first named it.
        if certified.last() != Some(&executed.height) {
            return Ok(());
        }
        if self.ledger.newest().state.height() < executed.height {
            match self.lineage(above).await {
                Some(lineage) => {
                    if let Err(error) = self.execute(runtime, &lineage, executed.height).await {
                        tracing::error!(%error, "a certified ancestor cannot be executed");
                    }
                }
                None => tracing::debug!(height = %executed.height, "behind: no verdict yet"),
            }
        }
        // If that did not get far enough, wait: the archive delivers, or the view ends and drops
        // this future.
        if self.ledger.wait_executed(executed.height).await.is_err() {
            pending::<()>().await;
        }
        match self.ledger.agrees(block.chain()) {
            Some(false) => Err(BlockRefusal::StateRoot(executed.height)),
            Some(true) | None => Ok(()),
        }
    }
}

/// Checks a block against its parent alone; returns the certified heights.
fn check_form(
    block: &Block,
    parent: &Block,
    context: &Context,
) -> Result<Vec<Height>, BlockRefusal> {
    let (header, above) = (block.header(), parent.header());
    if block.context() != *context {
        return Err(BlockRefusal::Context);
    }
    if header.height != above.height.next() {
        return Err(BlockRefusal::Height { got: header.height, parent: above.height });
    }
    let (got, parent_ms) = (header.timestamp_ms, above.timestamp_ms);
    if got <= parent_ms {
        return Err(BlockRefusal::Timestamp { got, parent: parent_ms });
    }
    let candidates = above.candidates(header.parent);
    let blocks = block.chain().certificates.iter().map(|certificate| certificate.block);
    let (certified, open) = certify(&candidates, blocks)?;
    if header.open != open {
        return Err(BlockRefusal::Open);
    }
    let newest = certified.last().copied().filter(|height| *height > above.executed.height);
    let expected = newest.unwrap_or(above.executed.height);
    // Without a newer certificate the named root must not change.
    let unchanged = newest.is_some() || header.executed == above.executed;
    if header.executed.height != expected || !unchanged {
        return Err(BlockRefusal::Executed { got: header.executed, expected });
    }
    Ok(certified)
}

fn since_epoch(ms: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(ms)).unwrap_or(UNIX_EPOCH)
}

/// A runtime's clock as Unix ms.
pub fn now_ms<E: Clock>(runtime: &E) -> u64 {
    let elapsed = runtime.current().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

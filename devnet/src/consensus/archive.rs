//! Marshal's archives of final blocks and their certificates: the recent ones in journals, all
//! others in the validator's store.
//!
//! Journals have one file per [`SECTION`] of blocks, and all files are open. Old sections are
//! pruned ([`trim`]), so that a long chain needs no more files than a short one. A peer that asks
//! for an older block gets it from the store, with the chain's certificate of it or the one that
//! this validator held. Without the certificate of an epoch's last block, a validator that was away
//! could not learn the next epoch's committee.

use super::{
    Digest, Finalization,
    application::Marshal,
    block::{BadProposer, Block},
    certificate,
    scheme::Scheme,
};
use crate::storage::{StorageError, ValidatorStore};
use commonware_consensus::{marshal::store, types::Height};
use commonware_runtime::{Clock, Handle, Metrics, Storage};
use commonware_storage::{
    archive::{self, Archive, Identifier, prunable},
    translator::EightCap,
};
use cowboy_engine::primitives;
use std::{num::NonZeroU64, sync::Arc};

/// Blocks or certificates per file of the archives' journals.
pub(super) const SECTION: NonZeroU64 = NonZeroU64::new(512).expect("not zero");
/// Number of newest blocks that are never pruned: more than a store can lose in a power failure.
const RECENT: u64 = 512;

/// Prunes old sections, once after each [`SECTION`] of blocks.
pub(super) fn trim(
    marshal: &Marshal,
    store: &ValidatorStore,
    stored: primitives::Height,
) -> Result<(), StorageError> {
    let stored = stored.get();
    if stored.is_multiple_of(SECTION.get()) && stored > RECENT {
        // From here on only the store has the pruned blocks, so it must be on disk.
        store.sync()?;
        marshal.prune(Height::new(stored - RECENT));
    }
    Ok(())
}

/// Whether the archive does not continue where the store ends. Either the store lost blocks below
/// the archive, or it is a copy of another store with more blocks. A block is in the archive before
/// it is in the store.
pub(super) async fn is_elsewhere<E: Storage + Metrics + Clock>(
    recent: &Recent<E, Arc<Block>>,
    stored: u64,
) -> Result<bool, ArchiveError> {
    let last = store::Blocks::last_index(recent).map_or(0, Height::get);
    if last <= stored {
        return Ok(last < stored);
    }
    Ok(!Archive::has(recent, Identifier::Index(stored + 1)).await?)
}

/// The certificate of the newest stored block that has one, within the last [`PROOF_WITHIN`].
pub(super) fn newest_certificate(
    store: &ValidatorStore,
    head: primitives::Height,
) -> Result<Option<Finalization>, StorageError> {
    for height in (head.get().saturating_sub(PROOF_WITHIN)..=head.get()).rev() {
        if let Some(certificate) = store.certificate(primitives::Height::new(height))? {
            return Ok(Some(certificate::to_finalization(&certificate)));
        }
    }
    Ok(None)
}

/// Number of blocks below the head that are searched for a certificate.
const PROOF_WITHIN: u64 = 64;

type Recent<E, V> = prunable::Archive<EightCap, E, Digest, V>;

pub(super) struct Blocks<E: Storage + Metrics + Clock> {
    recent: Recent<E, Arc<Block>>,
    store: Arc<ValidatorStore>,
}

pub(super) struct Certificates<E: Storage + Metrics + Clock> {
    recent: Recent<E, Finalization>,
    store: Arc<ValidatorStore>,
}

/// Why the archive cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Recent(#[from] archive::Error),
    #[error(transparent)]
    Store(#[from] StorageError),
    #[error(transparent)]
    Block(#[from] BadProposer),
}

impl<E: Storage + Metrics + Clock> Blocks<E> {
    pub(super) fn new(recent: Recent<E, Arc<Block>>, store: Arc<ValidatorStore>) -> Self {
        Self { recent, store }
    }

    fn stored(&self, id: Identifier<'_, Digest>) -> Result<Option<Arc<Block>>, ArchiveError> {
        let Some(height) = height_of(&self.store, id)? else { return Ok(None) };
        let block = self.store.block(height)?.map(Block::new).transpose()?;
        Ok(block.map(Arc::new))
    }
}

impl<E: Storage + Metrics + Clock> Certificates<E> {
    pub(super) fn new(recent: Recent<E, Finalization>, store: Arc<ValidatorStore>) -> Self {
        Self { recent, store }
    }

    fn stored(&self, id: Identifier<'_, Digest>) -> Result<Option<Finalization>, ArchiveError> {
        let Some(height) = height_of(&self.store, id)? else { return Ok(None) };
        let certificate = self.store.certificate(height)?;
        Ok(certificate.as_ref().map(certificate::to_finalization))
    }
}

fn height_of(
    store: &ValidatorStore,
    id: Identifier<'_, Digest>,
) -> Result<Option<primitives::Height>, StorageError> {
    match id {
        Identifier::Index(height) => Ok(Some(primitives::Height::new(height))),
        Identifier::Key(digest) => store.height_of(&certificate::hash(*digest)),
    }
}

/// The stored value, or `None` if the store is damaged: the peer gets no answer. An error here
/// would end the validator.
fn sound<T>(stored: Result<Option<T>, ArchiveError>) -> Option<T> {
    stored.unwrap_or_else(|error| {
        tracing::error!(%error, "an old block cannot be read");
        None
    })
}

const fn same<'a>(id: &Identifier<'a, Digest>) -> Identifier<'a, Digest> {
    match id {
        Identifier::Index(height) => Identifier::Index(*height),
        Identifier::Key(digest) => Identifier::Key(digest),
    }
}

impl<E: Storage + Metrics + Clock> store::Certificates for Certificates<E> {
    type BlockDigest = Digest;
    type Commitment = Digest;
    type Scheme = Scheme;
    type Error = ArchiveError;

    async fn put(
        mut self,
        height: Height,
        digest: Digest,
        finalization: &Finalization,
    ) -> Result<Self, ArchiveError> {
        self.recent = store::Certificates::put(self.recent, height, digest, finalization).await?;
        Ok(self)
    }

    async fn sync(mut self) -> Result<Self, ArchiveError> {
        self.recent = store::Certificates::sync(self.recent).await?;
        Ok(self)
    }

    async fn start_sync(mut self) -> Result<(Self, Handle<()>), ArchiveError> {
        let (recent, synced) = store::Certificates::start_sync(self.recent).await?;
        self.recent = recent;
        Ok((self, synced))
    }

    async fn get(&self, id: Identifier<'_, Digest>) -> Result<Option<Finalization>, ArchiveError> {
        let recent = store::Certificates::get(&self.recent, same(&id)).await?;
        Ok(recent.or_else(|| sound(self.stored(id))))
    }

    async fn has(&self, height: Height) -> Result<bool, ArchiveError> {
        Ok(store::Certificates::has(&self.recent, height).await?)
    }

    async fn prune(mut self, min: Height) -> Result<Self, ArchiveError> {
        self.recent = self.recent.prune(min.get()).await?;
        Ok(self)
    }

    fn last_index(&self) -> Option<Height> {
        store::Certificates::last_index(&self.recent)
    }

    fn ranges_from(&self, from: Height) -> impl Iterator<Item = (Height, Height)> {
        store::Certificates::ranges_from(&self.recent, from)
    }
}

impl<E: Storage + Metrics + Clock> store::Blocks for Blocks<E> {
    type Block = Arc<Block>;
    type Error = ArchiveError;

    async fn put(mut self, digest: Digest, block: &Arc<Block>) -> Result<Self, ArchiveError> {
        self.recent = store::Blocks::put(self.recent, digest, block).await?;
        Ok(self)
    }

    async fn sync(mut self) -> Result<Self, ArchiveError> {
        self.recent = store::Blocks::sync(self.recent).await?;
        Ok(self)
    }

    async fn start_sync(mut self) -> Result<(Self, Handle<()>), ArchiveError> {
        let (recent, synced) = store::Blocks::start_sync(self.recent).await?;
        self.recent = recent;
        Ok((self, synced))
    }

    async fn get(&self, id: Identifier<'_, Digest>) -> Result<Option<Arc<Block>>, ArchiveError> {
        let recent = store::Blocks::get(&self.recent, same(&id)).await?;
        Ok(recent.or_else(|| sound(self.stored(id))))
    }

    async fn prune(mut self, min: Height) -> Result<Self, ArchiveError> {
        self.recent = self.recent.prune(min.get()).await?;
        Ok(self)
    }

    fn missing_items(&self, start: Height, max: usize) -> Vec<Height> {
        store::Blocks::missing_items(&self.recent, start, max)
    }

    fn next_gap(&self, value: Height) -> (Option<Height>, Option<Height>) {
        store::Blocks::next_gap(&self.recent, value)
    }

    fn last_index(&self) -> Option<Height> {
        store::Blocks::last_index(&self.recent)
    }
}

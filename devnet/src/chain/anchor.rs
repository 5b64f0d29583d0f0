//! The newest state whose root a certified block names: the basis of proofs.

use super::ledger::Ledger;
use crate::storage::StorageError;
use cowboy_engine::{
    chain::{Certificate, Header, State, StateProof, Subject},
    primitives::Height,
};

/// Number of blocks below the head that are searched.
pub const LOOKED_AT: u64 = 64;

/// A state, and the certified header that names its root.
#[derive(Debug, Clone)]
pub struct Anchor {
    state: State,
    header: Header,
    certificate: Certificate,
}

impl Anchor {
    /// The newest anchor whose state is at or above block `from`; `None` if no block qualifies
    /// yet.
    pub fn newest(ledger: &Ledger, from: Height) -> Result<Option<Self>, StorageError> {
        let (store, head) = (ledger.store(), ledger.head().height().get());
        let lowest = head.saturating_sub(LOOKED_AT).max(from.next().get());
        for height in (lowest..=head).rev().map(Height::new) {
            let Some(certificate) = store.certificate(height)? else { continue };
            let Some(header) = store.block(height)?.map(|block| block.header) else { continue };
            if header.executed.height < from {
                return Ok(None);
            }
            let rooted = ledger.at(header.executed.height);
            if let Some(rooted) = rooted.filter(|at| at.root == header.executed.state_root) {
                return Ok(Some(Self { state: rooted.state.clone(), header, certificate }));
            }
        }
        Ok(None)
    }

    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Proves a subject's value in the state; `None` if the proof would be too large.
    pub fn prove(&self, subject: Subject) -> Option<Vec<u8>> {
        let (header, certificate) = (self.header.clone(), self.certificate.clone());
        let proof = StateProof::new(&self.state, subject, header, certificate).ok()?;
        proof.to_bytes().ok()
    }
}

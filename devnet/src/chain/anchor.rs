//! The newest state that a certified block names: what proofs are made from.

use super::ledger::Ledger;
use crate::storage::StorageError;
use cowboy_engine::{
    chain::{Certificate, Header, State, StateProof, Subject},
    primitives::Height,
};

/// Blocks below the head that are looked at.
const LOOKED_AT: u64 = 64;

/// A state, and the certified header that names its root.
#[derive(Debug, Clone)]
pub struct Anchor {
    state: State,
    header: Header,
    certificate: Certificate,
}

impl Anchor {
    /// The newest one whose state is of block `from` or a later one; `None`: not yet.
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
                return Ok(Some(Self { state: rooted.state, header, certificate }));
            }
        }
        Ok(None)
    }

    /// The state.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// What the state has for a subject; `None`: the proof would be too large.
    pub fn prove(&self, subject: Subject) -> Option<Vec<u8>> {
        let (header, certificate) = (self.header.clone(), self.certificate.clone());
        let proof = StateProof::new(&self.state, subject, header, certificate).ok()?;
        proof.to_bytes().ok()
    }
}

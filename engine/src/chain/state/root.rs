//! The root of a state: one hash over the hashes of its parts.

use super::{Ahead, Burned, OrderSince, Outbox, PendingCallback, State};
use crate::{
    chain::{params::Params, timers::Lane},
    job::SeedCertificate,
    presence::{Connectivity, Migration},
    primitives::{Hash, Wei, codec::to_vec, keccak256},
    record,
    speculation::Bonds,
};
use std::sync::Arc;

/// Number of hashes that the state root is computed from.
pub const PARTS: usize = 19;

/// Indices of the parts for which proofs exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Accounts = 0,
    /// Runner records and order.
    Registry = 1,
    Jobs = 3,
    Actors = 7,
    Storage = 9,
    Timers = 10,
    Tasks = 13,
    /// The committees: their map, and the first epochs of its newest entries.
    Committees = 15,
    /// The subset epochs, hashed in the same way.
    Subsets = 16,
    /// keccak256 of the encoded [`KnownPresence`](super::KnownPresence); zero if no P(h) is known.
    Presence = 17,
}

impl Part {
    /// The state root: keccak256("cowboy-state/v2" ‖ the parts).
    pub fn root(parts: &[Hash; PARTS]) -> Hash {
        let parts: Vec<u8> = parts.iter().flat_map(|part| part.0).collect();
        keccak256(&[b"cowboy-state/v2", &parts])
    }
}

record! {
    /// The values of a state outside its maps, except presence.
    struct Scalars {
        chain_id: u64,
        params: Arc<Params>,
        basefee_cycle: Wei,
        basefee_cell: Wei,
        burned: Burned,
        orders: Arc<Vec<OrderSince>>,
        seed_certificate: Option<SeedCertificate>,
        migration: Migration,
        connectivity: Connectivity,
        bonds: Bonds,
        subset_epoch_blocks: u64,
        lane: Lane,
        callbacks: Arc<Vec<PendingCallback>>,
        outbox: Outbox,
        marks: Option<Hash>,
        ahead: Option<Ahead>,
    }
}

impl State {
    /// Commits to everything that later blocks depend on.
    pub fn root(&self) -> Hash {
        Part::root(&self.parts())
    }

    pub fn parts(&self) -> [Hash; PARTS] {
        let scalars = to_vec(&Scalars {
            chain_id: self.chain_id,
            params: self.params.clone(),
            basefee_cycle: self.basefee_cycle,
            basefee_cell: self.basefee_cell,
            burned: self.burned,
            orders: self.orders.clone(),
            seed_certificate: self.seed_certificate,
            migration: self.migration,
            connectivity: self.connectivity,
            bonds: self.bonds,
            subset_epoch_blocks: self.validators.subset_epoch_blocks(),
            lane: self.timers.lane.clone(),
            callbacks: self.callbacks.clone(),
            outbox: self.outbox.clone(),
            marks: self.marks.commitment(),
            ahead: self.ahead,
        });
        let presence = self.presence.as_ref().map(|presence| keccak256(&[&to_vec(presence)]));
        let [committees, subsets] =
            self.validators.roots(self.params.epoch_blocks, self.connectivity.overlap_blocks);
        [
            self.accounts.root(),
            self.registry.root(),
            self.entitlements.root(),
            self.jobs.root(),
            self.open_jobs.root(),
            self.withheld.root(),
            self.mru.root(),
            self.actors.root(),
            self.code.root(),
            self.storage.root(),
            self.timers.queue.root(),
            self.timers.fairness.root(),
            self.timers.auction.root(),
            self.tasks.by_id.root(),
            self.tasks.open.root(),
            committees,
            subsets,
            presence.unwrap_or(Hash::ZERO),
            keccak256(&[&scalars]),
        ]
    }
}

//! Assignments that too few validators have sent for the runner to believe them.
//!
//! A single validator may invent a job or repeat an old one. A runner believes an attempt when more
//! validators have assigned it than may be dishonest.

use super::MAX_PEER_STREAMS;
use crate::primitives::{Hash, Height, PublicKey};
use std::collections::BTreeMap;

/// Maximum number of assignments kept per validator: as many as the streams it may have open.
const MAX_OF_ONE: usize = MAX_PEER_STREAMS;

/// One attempt at a job. The id fixes the job's specification and submitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProposedAttempt {
    pub job_id: Hash,
    pub assigned_at: Height,
    /// The last block in which the attempt's result counts.
    pub deadline: Height,
}

/// Each validator's assignments that are not believed yet.
#[derive(Debug)]
pub(super) struct Proposals(BTreeMap<PublicKey, BTreeMap<Hash, ProposedAttempt>>);

impl Proposals {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds a validator's assignment; returns the number of validators that have assigned this very
    /// attempt. When a validator has too many open assignments, the one with the earliest deadline
    /// is forgotten.
    pub(super) fn add(&mut self, from: &PublicKey, attempt: ProposedAttempt) -> usize {
        let own = self.0.entry(from.clone()).or_default();
        own.insert(attempt.job_id, attempt);
        if own.len() > MAX_OF_ONE {
            let others = own.values().filter(|other| other.job_id != attempt.job_id);
            let first = others.min_by_key(|other| (other.deadline, other.job_id));
            let first = first.map(|first| first.job_id).expect("there are more than one");
            own.remove(&first);
        }
        self.0.values().filter(|own| own.get(&attempt.job_id) == Some(&attempt)).count()
    }

    /// Removes an attempt that is believed or rejected, and earlier ones at the same job; returns
    /// the validators that had assigned them.
    pub(super) fn take(&mut self, attempt: &ProposedAttempt) -> Vec<PublicKey> {
        let mut alike = Vec::new();
        for (validator, own) in &mut self.0 {
            if own.get(&attempt.job_id).is_some_and(|other| other.deadline <= attempt.deadline) {
                own.remove(&attempt.job_id);
                alike.push(validator.clone());
            }
        }
        self.prune();
        alike
    }

    /// A validator withdraws its assignment of a job, up to the attempt with this deadline.
    pub(super) fn withdraw(&mut self, from: &PublicKey, job_id: &Hash, deadline: Height) {
        if let Some(own) = self.0.get_mut(from)
            && own.get(job_id).is_some_and(|attempt| attempt.deadline <= deadline)
        {
            own.remove(job_id);
        }
        self.prune();
    }

    /// A validator's connection has ended: it will repeat the assignments that still hold.
    pub(super) fn lost(&mut self, validator: &PublicKey) {
        self.0.remove(validator);
    }

    pub(super) fn advance(&mut self, head: Height) {
        for own in self.0.values_mut() {
            own.retain(|_, attempt| attempt.deadline >= head);
        }
        self.prune();
    }

    fn prune(&mut self) {
        self.0.retain(|_, own| !own.is_empty());
    }
}

//! The finalization certificates that this validator holds, and how to wait for one.

use super::{Digest, Finalization, scheme::Scheme};
use commonware_actor::Feedback;
use commonware_consensus::{
    Reporter,
    simplex::types::{Activity, Attributable as _},
};
use commonware_utils::{channel::oneshot, sync::Mutex};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// Maximum number of certificates kept. A block can only use those of its parent and eight open
/// ancestors.
const KEPT: usize = 128;

/// Counts of consensus events in this run of the validator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Views given up.
    pub nullified: u64,
    pub finalized: u64,
    /// Votes that contradict another by the same validator.
    pub conflicts: u64,
}

/// Recent finalizations by block, fed by Simplex. Clones share them.
#[derive(Clone, Default)]
pub struct Held(Arc<Mutex<HeldInner>>);

#[derive(Default)]
struct HeldInner {
    finalizations: BTreeMap<Digest, Finalization>,
    /// Keys of `finalizations`, oldest first.
    order: VecDeque<Digest>,
    waiters: BTreeMap<Digest, Vec<oneshot::Sender<()>>>,
    counters: Counters,
}

impl Held {
    pub fn get(&self, block: &Digest) -> Option<Finalization> {
        self.0.lock().finalizations.get(block).cloned()
    }

    /// Resolves once a finalization of `block` is held; with an error if many others come first.
    pub fn wait(&self, block: Digest) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut inner = self.0.lock();
        if inner.finalizations.contains_key(&block) {
            let _ = sender.send(());
        } else {
            inner.waiters.entry(block).or_default().push(sender);
        }
        receiver
    }

    /// Keeps a verified finalization unless one is already held for its block.
    pub fn insert(&self, finalization: Finalization) {
        let block = finalization.proposal.payload;
        let mut inner = self.0.lock();
        if inner.finalizations.contains_key(&block) {
            return;
        }
        inner.finalizations.insert(block, finalization);
        inner.order.push_back(block);
        while inner.order.len() > KEPT {
            let oldest = inner.order.pop_front().expect("longer than KEPT");
            inner.finalizations.remove(&oldest);
            inner.waiters.remove(&oldest);
        }
        for waiter in inner.waiters.remove(&block).unwrap_or_default() {
            let _ = waiter.send(());
        }
        // The waiters of blocks that never become final give up by themselves.
        inner.waiters.retain(|_, waiters| {
            waiters.retain(|waiter| !waiter.is_closed());
            !waiters.is_empty()
        });
    }

    pub fn counters(&self) -> Counters {
        self.0.lock().counters
    }
}

impl Reporter for Held {
    type Activity = Activity<Scheme, Digest>;

    fn report(&mut self, activity: Self::Activity) -> Feedback {
        match activity {
            Activity::Finalization(finalization) => {
                self.0.lock().counters.finalized += 1;
                self.insert(finalization);
            }
            Activity::Nullification(_) => self.0.lock().counters.nullified += 1,
            Activity::ConflictingNotarize(evidence) => self.conflict("notarize", evidence.signer()),
            Activity::ConflictingFinalize(evidence) => self.conflict("finalize", evidence.signer()),
            Activity::NullifyFinalize(evidence) => {
                self.conflict("nullify and finalize", evidence.signer());
            }
            _ => {}
        }
        Feedback::Ok
    }
}

impl Held {
    fn conflict(&self, votes: &str, signer: commonware_consensus::types::Participant) {
        self.0.lock().counters.conflicts += 1;
        tracing::warn!(signer = signer.get(), votes, "a validator's votes contradict");
    }
}

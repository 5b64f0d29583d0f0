//! The chain while it cannot be reached (AgenC §6.3).
//!
//! When no blocks arrive, that says nothing about a proof. So between [`Speculation::chain_lost`]
//! and [`Speculation::chain_back`] no deadline runs that depends on the chain: no proof, claim or
//! commitment expires, no submission goes out, and none is lost. Work and proofs go on. After
//! [`TRIES`] tries to reach the chain no task is accepted until it is back.

use super::{Speculation, event::SpeculationEventKind, output::EngineOutput, table::TaskIndex};
use crate::record;

/// Number of tries to reach the chain after which no task is accepted (§6.3).
pub const TRIES: u32 = 10;
/// Time before the first try, in milliseconds; it doubles before each further one (§6.3).
pub const FIRST_TRY_MS: u64 = 1_000;
/// The longest wait between two tries, in milliseconds.
pub const LONGEST_TRY_MS: u64 = 10_000;

/// The state of a chain that cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away {
    /// Start of the outage, in milliseconds.
    pub since: u64,
    /// Number of tries so far, at most [`TRIES`].
    pub tries: u32,
    /// Time of the next try, in milliseconds.
    pub(super) next: u64,
}
record!(Away { since, tries, next });

impl Away {
    /// Whether no task is accepted until the chain is back.
    pub const fn is_paused(&self) -> bool {
        self.tries >= TRIES
    }

    /// Time of the next try; `None` after the last.
    pub(super) fn next_try(&self) -> Option<u64> {
        (!self.is_paused()).then_some(self.next)
    }

    fn wait(tries: u32) -> u64 {
        FIRST_TRY_MS.saturating_mul(1 << tries.min(TRIES)).min(LONGEST_TRY_MS)
    }
}

impl Speculation {
    /// The chain cannot be reached, and was last reached at `since`. When this is reported again
    /// during an outage, the later `since` counts.
    pub fn chain_lost(&mut self, since: u64, now: u64) {
        self.now = self.now.max(now);
        let since = since.min(self.now);
        match &mut self.away {
            Some(away) => away.since = away.since.max(since),
            None => {
                let next = self.now.saturating_add(Away::wait(0));
                self.away = Some(Away { since, tries: 0, next });
                self.tell_of(None, SpeculationEventKind::ChainLost);
            }
        }
    }

    /// The chain can be reached again: claims and commitments are extended by the duration of the
    /// outage, and the timeouts of proofs restart.
    pub fn chain_back(&mut self, now: u64) {
        self.now = self.now.max(now);
        let Some(Away { since, .. }) = self.away.take() else { return };
        let live = |at: &TaskIndex| self.graph.status_of(*at).is_live();
        let now = self.now;
        let without = |from: u64| now - from.max(since).min(now);
        for at in self.graph.places().filter(live).collect::<Vec<_>>() {
            let terms = &mut self.terms[at];
            let longer = without(terms.accepted_at);
            terms.claim_expires_at = terms.claim_expires_at.saturating_add(longer);
            if let Some(made) = self.ledger.get(at).map(|one| one.created_at) {
                self.ledger.prolong(at, without(made));
            }
            self.begin_again(at);
            self.watch(at);
        }
        self.outputs.push_back(EngineOutput::ChainBack { away_ms: now - since });
        self.tell_of(None, SpeculationEventKind::ChainBack { away_ms: now - since });
        self.advance(now);
        self.settle();
    }

    pub const fn away(&self) -> Option<&Away> {
        self.away.as_ref()
    }

    /// Requests a try to reach the chain, if one is due.
    pub(super) fn try_chain(&mut self) {
        let Some(away) = &mut self.away else { return };
        if away.next_try().is_some_and(|at| at <= self.now) {
            away.tries += 1;
            away.next = self.now.saturating_add(Away::wait(away.tries));
            let attempt = away.tries;
            self.outputs.push_back(EngineOutput::TryChain { attempt });
        }
    }
}

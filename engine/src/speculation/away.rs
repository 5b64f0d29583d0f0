//! The chain, while it cannot be reached (AgenC §6.3).
//!
//! That no block comes says nothing of a proof. From [`Speculation::chain_lost`] to
//! [`Speculation::chain_back`], time counts against nothing that the chain is to answer: no proof,
//! claim or commitment expires, no submission goes out, and none is lost. Work and proofs go on.
//! After [`TRIES`] tries to reach it no task is accepted any more, until it is back.

use super::{Speculation, engine::Output, event::EventKind, table::Task};
use crate::record;

/// Tries to reach the chain before no task is accepted any more (§6.3).
pub const TRIES: u32 = 10;
/// Until the first try, in milliseconds; each further one comes after twice that (§6.3).
pub const FIRST_TRY_MS: u64 = 1_000;
/// The longest wait between two tries, in milliseconds.
pub const LONGEST_TRY_MS: u64 = 10_000;

/// A chain that cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away {
    /// Since when, in milliseconds.
    pub since: u64,
    /// Tries to reach it so far, [`TRIES`] at most.
    pub tries: u32,
    /// When the next one is due, in milliseconds.
    pub(super) next: u64,
}
record!(Away { since, tries, next });

impl Away {
    /// Whether no task is accepted until it is back.
    pub const fn is_paused(&self) -> bool {
        self.tries >= TRIES
    }

    /// When the next try is due; `None`: all were made.
    pub(super) fn next_try(&self) -> Option<u64> {
        (!self.is_paused()).then_some(self.next)
    }

    fn wait(tries: u32) -> u64 {
        FIRST_TRY_MS.saturating_mul(1 << tries.min(TRIES)).min(LONGEST_TRY_MS)
    }
}

impl Speculation {
    /// The chain cannot be reached, and could be at `since` for the last time. Said again of a
    /// chain that is away, the later `since` counts.
    pub fn chain_lost(&mut self, since: u64, now: u64) {
        self.now = self.now.max(now);
        let since = since.min(self.now);
        match &mut self.away {
            Some(away) => away.since = away.since.max(since),
            None => {
                let next = self.now.saturating_add(Away::wait(0));
                self.away = Some(Away { since, tries: 0, next });
                self.tell_of(None, EventKind::ChainLost);
            }
        }
    }

    /// The chain can be reached: claims and commitments last longer by the time that it was away,
    /// the times of proofs begin again.
    pub fn chain_back(&mut self, now: u64) {
        self.now = self.now.max(now);
        let Some(Away { since, .. }) = self.away.take() else { return };
        let live = |at: &Task| self.graph.status_of(*at).is_live();
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
        self.outputs.push_back(Output::ChainBack { away_ms: now - since });
        self.tell_of(None, EventKind::ChainBack { away_ms: now - since });
        self.advance(now);
        self.settle();
    }

    /// The chain, if it cannot be reached.
    pub const fn away(&self) -> Option<&Away> {
        self.away.as_ref()
    }

    /// Asks for a try to reach the chain, if one is due.
    pub(super) fn try_chain(&mut self) {
        let Some(away) = &mut self.away else { return };
        if away.next_try().is_some_and(|at| at <= self.now) {
            away.tries += 1;
            away.next = self.now.saturating_add(Away::wait(away.tries));
            let attempt = away.tries;
            self.outputs.push_back(Output::TryChain { attempt });
        }
    }
}

//! The inputs of a draw, and the results of the same votes, seed and MRU record under other rules.
//! The API reports them, and a client that verifies them computes them again.

use super::count;
use crate::types::{MruRead, PresenceRead, SeedSource, UnderRule};
use cowboy_engine::{
    chain::{Certificate, DrawRecord, State},
    job::{SeedRule, filter::Verdict, selection},
    presence::{Bitmap, ThresholdRule},
    primitives::{Address, Height, Wei},
    registry::Order,
};
use std::collections::BTreeSet;

/// The name of the rule that ignores presence.
const NO_FILTER: &str = "shadow";

pub(crate) struct Scene<'a> {
    /// The state after the block that drew or a later one, which knows the draw's validators and
    /// runners.
    pub state: &'a State,
    pub height: Height,
    pub draw: &'a DrawRecord,
    pub wanted: u32,
    /// The runners that passed the filters and left the registry in the block that drew.
    pub gone: &'a BTreeSet<Address>,
    pub ballots: Option<&'a Ballots>,
}

#[derive(Debug, Clone)]
pub(crate) struct Ballots {
    pub height: Height,
    pub embedded_in: Height,
    pub certificate: Certificate,
    /// The runners in its bitmaps, in order.
    pub order: Order,
}

impl Ballots {
    /// The runners in P(h) under a rule, in registry order.
    fn present(&self, state: &State, rule: ThresholdRule) -> Vec<Address> {
        let votes: Vec<(u32, &Bitmap)> =
            self.certificate.votes.iter().map(|vote| (vote.validator, &vote.presence)).collect();
        let bitmap = state.presence_under(rule, self.height, &votes, &self.order);
        bitmap.ones().filter_map(|at| self.order.as_slice().get(at as usize)).copied().collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DrawOutcome {
    rule: &'static str,
    in_force: bool,
    same: bool,
    pub present: Vec<Address>,
    pub committee: Vec<Address>,
}

impl DrawOutcome {
    pub fn named(&self, present: Vec<String>, committee: Vec<String>) -> UnderRule {
        let Self { rule, in_force, same, .. } = *self;
        UnderRule { rule: rule.to_owned(), in_force, present, committee, same }
    }
}

impl Scene<'_> {
    /// The MRU runner that the draw favours, and the factor of its weight.
    pub fn favoured(&self) -> Option<(Address, u64)> {
        self.draw.favoured(self.height).map(|favoured| (favoured.runner, favoured.multiplier))
    }

    pub fn seed_source(&self) -> SeedSource {
        let rule: SeedRule = self.state.params().selection_seed;
        let certificate = self.draw.certificate;
        SeedSource {
            rule: rule.to_string(),
            certificate_of: certificate.map(|certificate| certificate.height.get()),
            digest: certificate.map(|certificate| certificate.digest.into()),
        }
    }

    pub fn presence(&self) -> Option<PresenceRead> {
        let height = self.draw.presence?;
        let ballots = self.ballots;
        Some(PresenceRead {
            height: height.get(),
            age: self.height.get().saturating_sub(height.get() + 1),
            block_hash: ballots.map(|ballots| ballots.certificate.block.into()),
            votes: ballots.map(|ballots| count(ballots.certificate.votes.len())),
            embedded_in: ballots.map(|ballots| ballots.embedded_in.get()),
            rule: self.state.params().threshold_rule.to_string(),
        })
    }

    /// The MRU record that the draw read; `name` gives the runner's name.
    pub fn mru(&self, name: impl FnOnce(&Address) -> String) -> Option<MruRead> {
        let read = self.draw.mru?;
        let candidate = |runner: Address| {
            let verdict = self.draw.verdicts.iter().find(|verdict| verdict.runner == runner);
            verdict.is_some_and(|verdict| self.passed(verdict, verdict.dropped_by.is_none()))
        };
        let drawn = !self.draw.selection.draws.is_empty();
        Some(MruRead {
            runner: name(&read.runner),
            runner_address: read.runner.into(),
            set_at: read.set_at.get(),
            age: self.height.since(read.set_at),
            ttl_blocks: read.ttl_blocks,
            multiplier: read.multiplier,
            applied: drawn && self.favoured().is_some_and(|(runner, _)| candidate(runner)),
        })
    }

    fn passed(&self, verdict: &Verdict, by_filters: bool) -> bool {
        by_filters && !self.gone.contains(&verdict.runner)
    }

    /// The results that the draw would have had under each threshold rule, and without the presence
    /// filter. Empty if the votes are not known.
    pub fn outcomes(&self) -> Vec<DrawOutcome> {
        if self.draw.presence.is_some() && self.ballots.is_none() {
            return Vec::new();
        }
        let (filtered, rule) =
            (self.draw.phase.filters_presence(), self.state.params().threshold_rule);
        let registered: BTreeSet<_> = self.draw.verdicts.iter().map(|v| v.runner).collect();
        let present = |rule| {
            let all = self.ballots.filter(|_| self.draw.presence.is_some());
            let mut all = all.map_or_else(Vec::new, |ballots| ballots.present(self.state, rule));
            all.retain(|runner| registered.contains(runner));
            all
        };
        let under = |name, in_force, active, present: Vec<Address>| {
            let there: BTreeSet<_> = present.iter().collect();
            let passes = |verdict: &&Verdict| {
                let dropped = verdict.dropped_under(active, there.contains(&verdict.runner));
                self.passed(verdict, dropped.is_none())
            };
            let candidates: Vec<(Address, Wei)> =
                self.draw.verdicts.iter().filter(passes).map(|v| (v.runner, v.stake)).collect();
            let favoured = self.draw.favoured(self.height);
            let wanted = self.wanted as usize;
            let drawn = selection::committee(&candidates, self.draw.seed, wanted, favoured);
            let committee = drawn.committee;
            let same = committee == self.draw.selection.committee;
            DrawOutcome { rule: name, in_force, same, present, committee }
        };
        let mut outcomes: Vec<_> = ThresholdRule::ALL
            .into_iter()
            .map(|other| under(other.name(), filtered && other == rule, true, present(other)))
            .collect();
        outcomes.push(under(NO_FILTER, !filtered, false, present(rule)));
        outcomes
    }
}

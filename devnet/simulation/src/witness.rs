//! Compares validators' votes about runners with what they see and with the resulting P. Finds
//! runners that are present only because of liars, and runners that honest validators see but P
//! lacks.
//!
//! [`feasibility`] gives the number of liars that it takes for either. If fewer succeed, the
//! invariants `fabricated` and `hidden` are broken; if enough lied, the runners are reported by
//! name.

use crate::invariant::Violation;
use commonware_utils::sync::Mutex;
use cowboy_devnet::{
    chain::ledger::ExecutedBlock,
    consensus::presence::RunnerView,
    sample::{key, validator_keys},
};
use cowboy_engine::{
    chain::{Certificate, State, transition::Derived},
    presence::{Bitmap, ThresholdRule, feasibility},
    primitives::{Address, Height},
    registry::Order,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A record of all votes. Clones share it.
#[derive(Clone, Default)]
pub struct Witness(Arc<Mutex<BTreeMap<Height, Votes>>>);

#[derive(Default)]
struct Votes {
    /// Validators whose votes differed from what they saw.
    liars: BTreeSet<usize>,
    seen: BTreeSet<Address>,
}

impl Witness {
    /// The view of a validator, by index, that votes `told` while it sees `sight`.
    pub fn of(
        &self,
        validator: usize,
        sight: Arc<dyn RunnerView>,
        told: Arc<dyn RunnerView>,
    ) -> Arc<dyn RunnerView> {
        Arc::new(Watched { witness: self.clone(), validator, sight, told })
    }
}

struct Watched {
    witness: Witness,
    validator: usize,
    sight: Arc<dyn RunnerView>,
    told: Arc<dyn RunnerView>,
}

impl RunnerView for Watched {
    fn presence(&self, height: Height, state: &State, order: &Order) -> Bitmap {
        let sight = self.sight.presence(height, state, order);
        let told = self.told.presence(height, state, order);
        let mut votes = self.witness.0.lock();
        let votes = votes.entry(height).or_default();
        if told == sight {
            votes.seen.extend(sight.ones().map(|runner| order.as_slice()[runner as usize]));
        } else {
            votes.liars.insert(self.validator);
        }
        told
    }
}

/// A runner about which P is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    pub runner: usize,
    /// Number of blocks whose P is wrong about it.
    pub blocks: u64,
    /// The first of them.
    pub first: Height,
    /// The indexes of the liars whose votes caused it; empty if chance did.
    pub by: BTreeSet<usize>,
}

/// Coverage of the seen runners by P, over a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Runners, counted once per block, that were voted for by each honest validator of their
    /// subset whose vote is in the certificate.
    pub seen: u64,
    /// Number of those that P contains.
    pub present: u64,
    /// Present by the votes of liars alone, while no honest validator saw them.
    pub fabricated: Vec<Wrong>,
    /// Seen but not present.
    pub hidden: Vec<Wrong>,
}

/// Compares each P with the votes behind it.
pub struct Presences {
    witness: Witness,
    validators: usize,
    runners: BTreeMap<Address, usize>,
    checked: Height,
    coverage: Coverage,
}

impl Presences {
    pub fn new(witness: Witness, validators: usize, runners: usize) -> Self {
        let runner = |index| (key(&format!("runner-{index}")).address(), index);
        let runners = (0..runners).map(runner).collect();
        let (checked, coverage) = (Height::GENESIS, Coverage::default());
        Self { witness, validators, runners, checked, coverage }
    }

    pub fn coverage(&self) -> Coverage {
        self.coverage.clone()
    }

    /// Checks each P that a block is the first to make known. Returns the runners that turn out to
    /// be fabricated for the first time.
    pub fn check(&mut self, executed: &ExecutedBlock) -> Result<Vec<Wrong>, Violation> {
        let mut new = Vec::new();
        for derived in &executed.execution.derived {
            if derived.height <= self.checked {
                continue;
            }
            self.checked = derived.height;
            let certificate = &executed.block.certificates[derived.certificate];
            new.extend(self.of_block(&executed.execution.state, derived, certificate)?);
            let mut votes = self.witness.0.lock();
            // Older votes are not needed.
            *votes = votes.split_off(&derived.height.next());
        }
        Ok(new)
    }

    fn of_block(
        &mut self,
        state: &State,
        derived: &Derived,
        certificate: &Certificate,
    ) -> Result<Vec<Wrong>, Violation> {
        let height = derived.height;
        let committee = state.committee_in(state.epoch_at(height));
        let (n, rule) = (committee.len() as u32, state.params().threshold_rule);
        let votes = self.witness.0.lock();
        let no_votes = Votes::default();
        let Votes { liars, seen } = votes.get(&height).unwrap_or(&no_votes);
        let number: BTreeMap<_, _> =
            (0..self.validators).map(|v| (validator_keys(v).public().consensus_key, v)).collect();
        let of = |vote: u32| number.get(&committee[vote as usize].consensus_key).copied();
        let epochs = state.subset_epochs_at(height);
        let mut new = Vec::new();
        for (index, address) in (0u32..).zip(derived.order.as_slice()) {
            let Some(record) = state.registry().get(address) else { continue };
            let Some(runner) = self.runners.get(address).copied() else { continue };
            let subset: BTreeSet<_> = epochs
                .iter()
                .flat_map(|epoch| epoch.subset_of(&record.pubkey))
                .filter_map(|validator| number.get(&validator.consensus_key).copied())
                .collect();
            let present = derived.bitmap.get(index);
            let says: Vec<_> = certificate
                .votes
                .iter()
                .filter_map(|vote| Some((of(vote.validator)?, vote.presence.get(index))))
                .collect();
            let honest = says.iter().filter(|(validator, _)| !liars.contains(validator));
            let by = |lie: bool| -> BTreeSet<usize> {
                let lied = says.iter().filter(|(v, said)| *said == lie && liars.contains(v));
                lied.map(|(validator, _)| *validator).collect()
            };
            let near = liars.intersection(&subset).count() as u32;
            if present && !honest.clone().any(|(_, said)| *said) && !seen.contains(address) {
                let count = if rule == ThresholdRule::Subset { near } else { liars.len() as u32 };
                let enough = feasibility::to_fabricate(n, rule);
                if count < enough {
                    return Err(Violation::Fabricated { runner, height, liars: count, enough });
                }
                let wrong = Wrong { runner, blocks: 1, first: height, by: by(true) };
                if note(&mut self.coverage.fabricated, &wrong) {
                    new.push(wrong);
                }
            }
            let mut near_it = honest.filter(|(validator, _)| subset.contains(validator)).peekable();
            if near_it.peek().is_none() || !near_it.all(|(_, said)| *said) {
                continue;
            }
            self.coverage.seen += 1;
            if present {
                self.coverage.present += 1;
                continue;
            }
            let enough = feasibility::to_hide(n, rule);
            if near < enough {
                return Err(Violation::Hidden { runner, height, liars: near, enough });
            }
            let wrong = Wrong { runner, blocks: 1, first: height, by: by(false) };
            note(&mut self.coverage.hidden, &wrong);
        }
        Ok(new)
    }
}

/// Adds a block to a runner's entry; returns whether it is the first.
fn note(wrongs: &mut Vec<Wrong>, wrong: &Wrong) -> bool {
    match wrongs.iter_mut().find(|known| known.runner == wrong.runner) {
        Some(known) => {
            known.blocks += 1;
            known.by.extend(&wrong.by);
            false
        }
        None => {
            wrongs.push(wrong.clone());
            true
        }
    }
}

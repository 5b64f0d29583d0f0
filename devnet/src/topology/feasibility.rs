//! Whether presence can work at all with so many validators under a rule.

use cowboy_engine::presence::{ThresholdRule, feasibility, subset, threshold};
use std::fmt;

/// How often a runner that is connected to its whole subset is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// In every block with a certificate.
    Always,
    /// Only where the certificate happens to have enough votes of its validators.
    Sometimes,
    /// In no block: its validators are fewer than the votes it needs.
    Never,
}

/// What follows from a number of validators and a rule (spec connectivity.md §5, "Known limit").
///
/// A certificate has `quorum` of the validators' votes, and which ones is chance: in the worst
/// case every omitted vote is one of the runner's own validators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feasibility {
    /// The rule.
    pub rule: ThresholdRule,
    /// Validators in the set.
    pub validators: u32,
    /// Validators that a runner is connected to.
    pub subset: u32,
    /// Votes that a certificate has.
    pub quorum: u32,
    /// Votes that a runner needs; under [`ThresholdRule::Subset`] of those by its own validators,
    /// if they all say the same.
    pub threshold: u32,
    /// How often a connected runner is present.
    pub visibility: Visibility,
    /// The same as a fraction, the number of certificates that show it and of all that there can
    /// be, in lowest terms. `None` for more validators than a topology may have.
    pub present: Option<(u128, u128)>,
    /// Dishonest validators that it takes to make a runner present which no honest one sees.
    pub to_fabricate: u32,
    /// Dishonest validators that it takes to hide a connected runner; 0: chance can.
    pub to_hide: u32,
}

impl Feasibility {
    /// The outcome for a set of `validators`, of which there is at least one.
    pub fn of(validators: usize, rule: ThresholdRule) -> Self {
        let subset = subset::size(validators) as u32;
        let validators = validators as u32;
        let quorum = threshold::quorum(validators);
        let certain = subset.saturating_sub(validators - quorum);
        let threshold = match rule {
            ThresholdRule::Committee => threshold::of(validators),
            ThresholdRule::Quorum => threshold::of(quorum),
            // Of m votes of its own validators a runner needs f + 1, and it has all m: one will do.
            ThresholdRule::Subset => 1,
        };
        let visibility = if threshold > subset {
            Visibility::Never
        } else if certain < threshold {
            Visibility::Sometimes
        } else {
            Visibility::Always
        };
        let present = threshold::visibility(validators, subset, threshold);
        Self {
            rule,
            validators,
            subset,
            quorum,
            threshold,
            visibility,
            present: present.map(|(some, all)| {
                let divisor = greatest_common_divisor(some, all);
                (some / divisor, all / divisor)
            }),
            to_fabricate: feasibility::to_fabricate(validators, rule),
            to_hide: feasibility::to_hide(validators, rule),
        }
    }

    /// In how many of 100 blocks a connected runner is present: `71.4 %`, rounded down.
    pub fn present_in(&self) -> String {
        match self.present {
            Some((some, all)) => {
                let per_mille = some * 1_000 / all;
                format!("{}.{} %", per_mille / 10, per_mille % 10)
            }
            None => "?".to_owned(),
        }
    }
}

/// Of two numbers, of which the second is not zero.
fn greatest_common_divisor(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl fmt::Display for Feasibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, validators, subset, quorum, threshold, visibility, .. } = *self;
        match visibility {
            Visibility::Always => write!(
                f,
                "with {validators} validators under `{rule}` a runner connected to its {subset} \
                 validators is present in every certified block"
            ),
            Visibility::Sometimes => write!(
                f,
                "with {validators} validators under `{rule}` a runner needs {threshold} of its \
                 {subset} validators among the {quorum} votes of a certificate, which leave out \
                 {}: where all are left out equally often, it is present in {} of the blocks",
                validators - quorum,
                self.present_in(),
            ),
            Visibility::Never => write!(
                f,
                "with {validators} validators `{rule}` needs {threshold} votes and a runner has \
                 {subset} connections: no runner would ever be present; expected `subset`, or \
                 fewer validators"
            ),
        }
    }
}

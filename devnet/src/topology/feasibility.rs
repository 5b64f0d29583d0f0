//! Whether presence can work at all with a number of validators under a rule.

use cowboy_engine::presence::{ThresholdRule, canonical, feasibility, subset};
use std::fmt;

/// How reliably a runner that is connected to its whole subset is present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// In every block with a certificate.
    Always,
    /// Only in blocks whose certificate happens to contain enough votes of its validators.
    Sometimes,
    /// In no block: it has fewer validators than it needs votes.
    Never,
}

/// The properties of a number of validators under a rule (spec connectivity.md §5, "Known limit").
///
/// A certificate contains the votes of a `quorum` of the validators, chosen by chance: in the worst
/// case every omitted vote belongs to one of the runner's own validators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feasibility {
    pub rule: ThresholdRule,
    /// Number of validators on the chain.
    pub validators: u32,
    /// Number of validators that a runner is connected to.
    pub subset: u32,
    /// Number of votes in a certificate.
    pub quorum: u32,
    /// Votes that a runner needs. Under [`ThresholdRule::Subset`], they are votes of its own
    /// validators, assuming that these all agree.
    pub threshold: u32,
    /// How often a connected runner is present.
    pub visibility: Visibility,
    /// The same as a fraction in lowest terms: certificates in which the runner is present, and all
    /// possible certificates. `None` for more validators than a topology may have.
    pub present: Option<(u128, u128)>,
    /// Dishonest validators needed to make a runner present that no honest validator sees.
    pub to_fabricate: u32,
    /// Dishonest validators needed to hide a connected runner; 0 when chance alone can hide it.
    pub to_hide: u32,
}

impl Feasibility {
    /// Computes the properties for `validators`, at least one.
    pub fn of(validators: usize, rule: ThresholdRule) -> Self {
        let subset = subset::size(validators) as u32;
        let validators = validators as u32;
        let quorum = canonical::quorum(validators);
        let certain = subset.saturating_sub(validators - quorum);
        let threshold = match rule {
            ThresholdRule::Committee => canonical::of(validators),
            ThresholdRule::Quorum => canonical::of(quorum),
            // A runner needs f + 1 of its validators' m votes, and all m agree: one is enough.
            ThresholdRule::Subset => 1,
        };
        let visibility = if threshold > subset {
            Visibility::Never
        } else if certain < threshold {
            Visibility::Sometimes
        } else {
            Visibility::Always
        };
        let present = canonical::visibility(validators, subset, threshold);
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

    /// The share of blocks in which a connected runner is present: `71.4 %`, rounded down.
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

/// The greatest common divisor; `b` must not be zero.
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

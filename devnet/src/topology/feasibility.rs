//! Whether presence can work at all with so many validators under a rule.

use cowboy_engine::presence::{ThresholdRule, subset, threshold};
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
    /// Votes that a runner needs.
    pub threshold: u32,
    /// How often a connected runner is present.
    pub visibility: Visibility,
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
        Self { rule, validators, subset, quorum, threshold, visibility }
    }
}

impl fmt::Display for Feasibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, validators, subset, quorum, threshold, visibility } = *self;
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
                 {}: it is not certain to be present",
                validators - quorum
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

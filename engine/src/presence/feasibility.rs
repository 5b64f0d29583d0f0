//! The power of dishonest validators over presence, by their number (spec connectivity.md §5,
//! "Known limit").
//!
//! The votes in a certificate depend on chance, or on its leader's choice, so the certificate that
//! suits the dishonest validators best counts. It leaves out n − quorum of the `n` validators.

use super::{ThresholdRule, subset};
use crate::presence::canonical;

/// The fewest dishonest validators of `n` that can make a runner present that no honest one sees.
pub fn to_fabricate(n: u32, rule: ThresholdRule) -> u32 {
    match rule {
        ThresholdRule::Committee => canonical::of(n),
        ThresholdRule::Quorum => canonical::of(canonical::quorum(n)),
        ThresholdRule::Subset => {
            // The fewer honest validators of the runner's subset are heard, the fewer votes it
            // takes.
            let (subset, omitted) = (subset::size(n as usize) as u32, n - canonical::quorum(n));
            let enough = |dishonest: &u32| {
                let honest = (subset - dishonest).saturating_sub(omitted);
                *dishonest >= canonical::of(dishonest + honest)
            };
            (1..=subset).find(enough).unwrap_or(subset)
        }
    }
}

/// The fewest dishonest validators of `n` that can hide a runner that is connected to its whole
/// subset; 0 if chance alone can.
pub fn to_hide(n: u32, rule: ThresholdRule) -> u32 {
    let (subset, omitted) = (subset::size(n as usize) as u32, n - canonical::quorum(n));
    let enough = |dishonest: &u32| {
        let honest = (subset - dishonest).saturating_sub(omitted);
        let need = match rule {
            ThresholdRule::Committee => canonical::of(n),
            ThresholdRule::Quorum => canonical::of(canonical::quorum(n)),
            ThresholdRule::Subset => canonical::of(dishonest + honest),
        };
        honest < need
    };
    (0..=subset).find(enough).unwrap_or(subset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presence::{Bitmap, canonical};

    /// Every choice of `size` out of `n` validators, as bits.
    fn choices(n: u32, size: u32) -> impl Iterator<Item = u32> {
        (0..1 << n).filter(move |chosen: &u32| chosen.count_ones() == size)
    }

    /// Whether a runner of the subset 0..k can be present, and absent, over all certificates, if
    /// validators in `dishonest` vote `lie` and the others `truth`.
    fn outcomes(n: u32, rule: ThresholdRule, dishonest: u32, lie: bool) -> Vec<bool> {
        let k = subset::size(n as usize) as u32;
        let members = [(0..k).collect::<Vec<_>>()];
        let outcome = |certificate: u32| {
            let votes = (0..n).filter(|v| certificate >> v & 1 == 1).map(|v| {
                // An honest validator in the subset sees the opposite of the lie.
                let seen = if dishonest >> v & 1 == 1 { lie } else { !lie && v < k };
                (v, Bitmap::from_fn(1, |_| seen))
            });
            let votes: Vec<_> = votes.collect();
            let votes: Vec<_> = votes.iter().map(|(v, bitmap)| (*v, bitmap)).collect();
            canonical(&votes, 1, n, rule, &members).get(0)
        };
        choices(n, canonical::quorum(n)).map(outcome).collect()
    }

    #[test]
    fn they_are_the_fewest_of_all_certificates() {
        for n in 1..=8 {
            for rule in ThresholdRule::ALL {
                let able = |lie: bool, size: u32| {
                    choices(n, size)
                        .any(|dishonest| outcomes(n, rule, dishonest, lie).contains(&lie))
                };
                let fabricate = (1..=n).find(|size| able(true, *size));
                assert_eq!(Some(to_fabricate(n, rule)), fabricate, "{n} {rule}");
                let hide = (0..=n).find(|size| able(false, *size));
                assert_eq!(Some(to_hide(n, rule)), hide, "{n} {rule}");
            }
        }
    }
}

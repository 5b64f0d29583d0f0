//! Prices, bids and tips of policy `eip1559` (timers.md §4; CIP-1 §3, §7).
//!
//! A timer states the maximum that it pays per cycle, including lane basefee and priority, and the
//! maximum priority. The lane basefee is the same for the whole block; the first maximum less the
//! lane basefee is an upper bound for the priority. All arithmetic is exact; overflow of a u128
//! saturates.

use super::{Tier, Tiers};
use crate::primitives::Wei;

/// The answer of a gas bidding agent (CIP-1 §7.1, `TxFeeParams`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxFeeParams {
    /// Maximum wei per cycle, including lane basefee and priority.
    pub max_fee_per_cycle: Wei,
    /// Maximum wei per cycle for the proposer.
    pub max_priority_fee_per_cycle: Wei,
    /// Maximum wei per cell. Ignored: a fire pays the basefee.
    pub max_fee_per_cell: Wei,
    /// Maximum wei per cell for the proposer. Ignored: cells pay no priority.
    pub max_priority_fee_per_cell: Wei,
}

/// The priority per cycle, paid to the proposer: min(max_priority, max_fee − lane basefee), in wei.
/// `None`: the lane costs more than the timer pays, and it waits.
pub fn priority(max_fee: Wei, max_priority: Wei, lane_basefee: Wei) -> Option<Wei> {
    max_fee.checked_sub(lane_basefee).map(|rest| rest.min(max_priority))
}

/// The lower median of the priorities, in wei per cycle, that a block's fired timers paid; 0 if
/// none fired. Reorders `tips`.
pub fn p50(tips: &mut [Wei]) -> Wei {
    match tips.len().checked_sub(1) {
        Some(last) => *tips.select_nth_unstable(last / 2).1,
        None => Wei::ZERO,
    }
}

/// The bid of the default agent, which bids for every timer that names no other (CIP-1 §7.1).
pub const fn default_bid(lane_basefee: Wei, basefee_cell: Wei, p50: Wei) -> TxFeeParams {
    TxFeeParams {
        max_fee_per_cycle: lane_basefee.saturating_mul(2),
        max_priority_fee_per_cycle: p50,
        max_fee_per_cell: basefee_cell,
        max_priority_fee_per_cell: Wei::ZERO,
    }
}

/// A tier's priority: floor(p50 × multiplier / 1000) wei per cycle (CIP-1 §7.3).
pub const fn tier_priority(p50: Wei, tier: Tier, multipliers: &Tiers) -> Wei {
    let (per_mille, p50) = (multipliers.of(tier) as u128, p50.get());
    // p50 = q × 1000 + r: the direct product could overflow a u128 where the result does not.
    let whole = Wei::new(p50 / 1_000).saturating_mul(per_mille);
    whole.saturating_add(Wei::new(p50 % 1_000 * per_mille / 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer::TimerConfig;

    #[test]
    fn the_lane_basefee_comes_first() {
        let check = |max_fee, max_priority, expected: Option<u128>| {
            let wei = Wei::new;
            let got = priority(wei(max_fee), wei(max_priority), wei(100));
            assert_eq!(got.map(Wei::get), expected, "{max_fee} {max_priority}");
        };
        check(99, 5, None);
        check(100, 5, Some(0));
        check(103, 5, Some(3));
        check(200, 5, Some(5));
        check(u128::MAX, u128::MAX, Some(u128::MAX - 100));
    }

    #[test]
    fn the_median_is_the_lower_one() {
        let check = |tips: &[u128], expected| {
            let mut tips: Vec<_> = tips.iter().copied().map(Wei::new).collect();
            assert_eq!(p50(&mut tips).get(), expected);
        };
        check(&[], 0);
        check(&[7], 7);
        check(&[9, 3], 3);
        check(&[9, 3, 5], 5);
        check(&[9, 3, 5, 4], 4);
    }

    #[test]
    fn tiers_are_exact_to_the_end_of_the_range() {
        let tiers = TimerConfig::default().priority_tier_multipliers;
        let check = |p50, tier, expected| {
            assert_eq!(tier_priority(Wei::new(p50), tier, &tiers).get(), expected, "{p50}");
        };
        check(1_001, Tier::Economy, 800);
        check(1_001, Tier::Fast, 1_501);
        check(3, Tier::Urgent, 7);
        check(u128::MAX, Tier::Standard, u128::MAX);
        check(u128::MAX, Tier::Urgent, u128::MAX);
        check(u128::MAX / 1_000 * 1_000, Tier::Economy, u128::MAX / 1_000 * 800);
    }
}

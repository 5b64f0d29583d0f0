//! Words for timers, for commands and the dashboard.

use cowboy_devnet::types::{DeferralReason, DueFate, TimerStatus, TimerTier};
use cowboy_engine::timer::Policy;

pub fn has_ended(status: TimerStatus) -> bool {
    !matches!(status, TimerStatus::Scheduled | TimerStatus::Due)
}

pub fn tier(tier: TimerTier) -> &'static str {
    match tier {
        TimerTier::Ring => "block ring",
        TimerTier::Epoch => "epoch queue",
        TimerTier::Overflow => "overflow tree",
        TimerTier::CarryOver => "carry-over",
    }
}

pub fn why(reason: DeferralReason) -> &'static str {
    match reason {
        DeferralReason::PricedOut => "priced out",
        DeferralReason::OverCap => "over the cap",
        DeferralReason::LaneFull => "lane full",
        DeferralReason::InsufficientFunds => "payer short of funds",
        DeferralReason::GcWaiting => "expired, not removed yet",
    }
}

pub fn next(fate: DueFate) -> &'static str {
    match fate {
        DueFate::Fires => "fires",
        DueFate::LaneFull => "lane full",
        DueFate::InsufficientFunds => "payer short of funds",
        DueFate::PricedOut => "priced out",
        DueFate::OverCap => "over the cap",
        DueFate::Expired => "expired",
    }
}

/// A weight: `1.500`.
pub fn weight(per_mille: u64) -> String {
    format!("{}.{:03}", per_mille / 1_000, per_mille % 1_000)
}

/// A median of whole numbers, given as its double: `2.5`.
pub fn median(twice: u64) -> String {
    format!("{}.{}", twice / 2, twice % 2 * 5)
}

/// The meaning of an empty list of weights.
pub fn evenly(policy: &str) -> &'static str {
    match Policy::named(policy) {
        Some(Policy::Eip1559) => "no timer fired in the window: every actor has weight 2",
        Some(Policy::Fifo) => "first come, first served: no weights",
        _ => {
            "no timer fired in the window and every actor has weight 1: an epoch's results change \
             weights"
        }
    }
}

//! When not to speculate (AgenC §11.3).
//!
//! Closed, everything goes its way. The breaker opens upon `breaker.threshold` failures within
//! [`WINDOW_MS`], or when more than [`RATE_PERCENT`] of the last [`RATE_TASKS`] resolved tasks were
//! rolled back, of at least [`RATE_LEAST`]. More than `breaker.resetMs` after the last failure it
//! is half open and lets one task through: a success closes it, a failure opens it again at once.

use crate::{names, record};

/// How far back failures count, in milliseconds (speculation.md, breaker).
pub const WINDOW_MS: u64 = 60_000;
/// Resolved tasks that the rate of rollbacks is taken over.
pub const RATE_TASKS: u64 = 20;
/// Resolved tasks below which there is no rate.
pub const RATE_LEAST: u64 = 10;
/// The rate above which the breaker opens, in percent.
pub const RATE_PERCENT: u64 = 10;

/// What the breaker lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerState {
    /// All.
    Closed,
    /// Nothing.
    Open,
    /// One task, to see how it goes.
    HalfOpen,
}

names!(BreakerState: Closed = "closed", Open = "open", HalfOpen = "half_open");

/// What opens the breaker, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Failures within [`WINDOW_MS`] that open it; at least 1.
    pub threshold: u64,
    /// Milliseconds after the last failure until it is half open.
    pub reset_ms: u64,
}

/// The circuit breaker.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Breaker {
    /// When the last failures were, oldest first, while it is closed.
    failures: Vec<u64>,
    /// How the last tasks ended: a one for a rollback, the newest lowest.
    outcomes: u64,
    /// How many of them there are, at most [`RATE_TASKS`].
    resolved: u64,
    /// When the last failure was, unless it is closed.
    open_since: Option<u64>,
    /// Half open, whether the one task has been let through.
    probing: bool,
}
record!(Breaker { failures, outcomes, resolved, open_since, probing });

impl Breaker {
    /// What it lets through at `now`.
    pub fn state(&self, limits: Limits, now: u64) -> BreakerState {
        match self.open_since {
            None => BreakerState::Closed,
            Some(since) if now.saturating_sub(since) > limits.reset_ms => BreakerState::HalfOpen,
            Some(_) => BreakerState::Open,
        }
    }

    /// Whether a task may speculate at `now`.
    pub fn can_proceed(&self, limits: Limits, now: u64) -> bool {
        match self.state(limits, now) {
            BreakerState::Closed => true,
            BreakerState::Open => false,
            BreakerState::HalfOpen => !self.probing,
        }
    }

    /// A task speculates.
    pub fn proceed(&mut self, limits: Limits, now: u64) {
        self.probing = self.state(limits, now) == BreakerState::HalfOpen;
    }

    /// A task that had been let through ended without telling anything: another one may go.
    pub const fn release(&mut self) {
        self.probing = false;
    }

    /// A task failed.
    pub fn record_failure(&mut self, limits: Limits, now: u64) {
        if self.open_since.is_some() {
            self.open(now);
            return;
        }
        self.failures.retain(|&at| now.saturating_sub(at) <= WINDOW_MS);
        self.failures.push(now);
        if self.failures.len() as u64 >= limits.threshold {
            self.open(now);
        }
    }

    /// A task was confirmed.
    pub fn record_success(&mut self, limits: Limits, now: u64) {
        if self.state(limits, now) == BreakerState::HalfOpen {
            *self = Self::default();
        }
    }

    /// A task was resolved, by a rollback or not.
    pub fn record_outcome(&mut self, rolled_back: bool, now: u64) {
        self.outcomes = (self.outcomes << 1 | u64::from(rolled_back)) & ((1 << RATE_TASKS) - 1);
        self.resolved = (self.resolved + 1).min(RATE_TASKS);
        let above = self.rolled_back() * 100 > RATE_PERCENT * self.resolved;
        if self.open_since.is_none() && self.resolved >= RATE_LEAST && above {
            self.open(now);
        }
    }

    /// Of how many of the last resolved tasks, and how many of those were rolled back.
    pub fn rate(&self) -> (u64, u64) {
        (self.rolled_back(), self.resolved)
    }

    /// Whether this can have come about under any limits; of what is read from a snapshot.
    pub(super) fn is_sound(&self, now: u64) -> bool {
        self.failures.is_sorted()
            && self.failures.last().is_none_or(|&at| at <= now)
            && self.open_since.is_none_or(|at| at <= now)
            && self.resolved <= RATE_TASKS
            && self.outcomes >> self.resolved == 0
    }

    fn rolled_back(&self) -> u64 {
        self.outcomes.count_ones().into()
    }

    fn open(&mut self, now: u64) {
        *self = Self { open_since: Some(now), ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { threshold: 5, reset_ms: 60_000 };

    #[test]
    fn five_failures_open_it_only_within_a_minute() {
        let mut breaker = Breaker::default();
        for at in [0, 10_000, 20_000, 30_000, 60_001] {
            breaker.record_failure(LIMITS, at);
        }
        assert_eq!(breaker.state(LIMITS, 60_001), BreakerState::Closed);
        breaker.record_failure(LIMITS, 60_002);
        assert_eq!(breaker.state(LIMITS, 60_002), BreakerState::Open);
    }

    #[test]
    fn more_than_a_tenth_of_rollbacks_opens_it_once_there_are_ten() {
        let mut breaker = Breaker::default();
        breaker.record_outcome(true, 0);
        for _ in 0..9 {
            breaker.record_outcome(false, 0);
        }
        assert_eq!((breaker.rate(), breaker.state(LIMITS, 0)), ((1, 10), BreakerState::Closed));
        breaker.record_outcome(true, 0);
        assert_eq!(breaker.state(LIMITS, 0), BreakerState::Open);
    }

    #[test]
    fn half_open_lets_one_through() {
        let mut breaker = Breaker::default();
        (0..5).for_each(|_| breaker.record_failure(LIMITS, 0));
        assert!(!breaker.can_proceed(LIMITS, 60_000));
        assert!(breaker.can_proceed(LIMITS, 60_001));
        breaker.proceed(LIMITS, 60_001);
        assert!(!breaker.can_proceed(LIMITS, 60_002));
        breaker.release();
        assert!(breaker.can_proceed(LIMITS, 60_003));
        breaker.record_success(LIMITS, 60_004);
        assert_eq!(breaker.state(LIMITS, 60_004), BreakerState::Closed);
    }
}

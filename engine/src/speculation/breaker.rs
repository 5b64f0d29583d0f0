//! The circuit breaker for speculation (AgenC §11.3).
//!
//! A closed breaker lets everything through. It opens after `breaker.threshold` failures within
//! [`WINDOW_MS`], or when more than [`RATE_PERCENT`] of the last [`RATE_TASKS`] resolved tasks were
//! rolled back (if there are at least [`RATE_LEAST`]). More than `breaker.resetMs` after the last
//! failure it is half open and lets one task through, the probe. Only the probe decides what
//! follows: if it is confirmed, the breaker closes; if it is undone by a failure, its own or an
//! ancestor's, the breaker opens again at once; if it is cancelled, another task may be the probe.
//! Other tasks have no influence.
//!
//! Excessive slashing opens it too (§11.2): more than `breaker.slashLimit` lost within
//! [`SLASH_WINDOW_MS`]. Losses before it opened no longer count after it closes.
//!
//! An operator may hold it open or closed (§11.2, manual override; `breaker.override`). Its own
//! state keeps changing underneath, and applies again when the override ends.

use super::{RollbackReason, TaskId};
use crate::{names, primitives::Wei, record};

/// The window in which failures count, in milliseconds (speculation.md, breaker).
pub const WINDOW_MS: u64 = 60_000;
/// Number of resolved tasks over which the rate of rollbacks is computed.
pub const RATE_TASKS: u64 = 20;
/// Minimum number of resolved tasks for a rate.
pub const RATE_LEAST: u64 = 10;
/// The rate above which the breaker opens, in percent.
pub const RATE_PERCENT: u64 = 10;
/// Maximum number of failures that an open breaker remembers; the oldest are forgotten first.
pub const REMEMBERED: usize = 16;
/// Maximum of `breaker.threshold`.
pub const MAX_THRESHOLD: u64 = 1_000;

/// The window in which slashes count, in milliseconds.
pub const SLASH_WINDOW_MS: u64 = 3_600_000;
/// Slashes within this time are merged, in milliseconds.
const SLASH_STEP_MS: u64 = SLASH_WINDOW_MS / 60;

/// The state of the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerState {
    Closed,
    Open,
    /// Lets one task through as a probe.
    HalfOpen,
}

names!(BreakerState: Closed = "closed", Open = "open", HalfOpen = "half_open");

/// The cause of an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerCause {
    /// `breaker.threshold` failures within [`WINDOW_MS`].
    Failures,
    /// Too many of the last resolved tasks were rolled back.
    Rate,
    /// The probe of a half-open breaker failed.
    Probe,
    /// More than `breaker.slashLimit` was slashed within [`SLASH_WINDOW_MS`].
    Slashes,
}

names!(BreakerCause: Failures = "failures", Rate = "rate", Probe = "probe", Slashes = "slashes");

/// An operator's override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Override {
    /// No override.
    #[default]
    None,
    Open,
    /// All tasks may speculate, regardless of failures.
    Closed,
}

names!(Override: None = "none", Open = "open", Closed = "closed");

/// Limits at which the breaker opens, and the time until it is half open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerLimits {
    /// Number of failures within [`WINDOW_MS`] that open it; 1 to [`MAX_THRESHOLD`].
    pub threshold: u64,
    /// Milliseconds after the last failure until it is half open.
    pub reset_ms: u64,
    /// Maximum slashed within [`SLASH_WINDOW_MS`], in the smallest unit; 0: unlimited.
    pub slash_limit: u64,
    /// The operator's override.
    pub held: Override,
}

impl BreakerLimits {
    /// Five failures, a minute, and a tenth of the default maximum of locked stake.
    pub const DEFAULT: Self = Self {
        threshold: 5,
        reset_ms: 60_000,
        slash_limit: 10_000_000_000_000,
        held: Override::None,
    };
}

/// Slashes at about the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slash {
    /// Time of the first of them, in milliseconds.
    at: u64,
    amount: Wei,
}
record!(Slash { at, amount });

/// A task that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskFailure {
    pub task: TaskId,
    pub reason: RollbackReason,
    /// Time in milliseconds.
    pub at: u64,
}
record!(TaskFailure { task, reason, at });

/// The state of a breaker that is not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Time of the opening, or of the last failure since then, in milliseconds.
    pub since: u64,
    pub cause: BreakerCause,
    /// The failures that opened it and those since then, oldest first, at most the last
    /// [`REMEMBERED`]. If a rate opened it, failures older than [`WINDOW_MS`] are not included.
    pub failures: Vec<TaskFailure>,
    /// Number of the `resolved` tasks that had been rolled back when it opened.
    pub rolled_back: u64,
    /// Number of tasks over which the rate was computed when it opened.
    pub resolved: u64,
    /// The probe, when half open.
    pub probe: Option<TaskId>,
}
record!(Opened { since, cause, failures, rolled_back, resolved, probe });

/// The circuit breaker's state and history.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Breaker {
    /// The last failures, oldest first, while it is closed.
    failures: Vec<TaskFailure>,
    /// The outcomes of the last tasks as bits: 1 for a rollback, the newest lowest.
    outcomes: u64,
    /// Number of valid bits in `outcomes`, at most [`RATE_TASKS`].
    resolved: u64,
    /// The last slashes, oldest first, while it is closed.
    slashes: Vec<Slash>,
    opened: Option<Opened>,
}
record!(Breaker { failures, outcomes, resolved, slashes, opened });

impl Breaker {
    /// The state at `now`, with the override.
    pub fn state(&self, limits: BreakerLimits, now: u64) -> BreakerState {
        match limits.held {
            Override::None => self.own_state(limits, now),
            Override::Open => BreakerState::Open,
            Override::Closed => BreakerState::Closed,
        }
    }

    /// The state at `now`, without the override.
    fn own_state(&self, limits: BreakerLimits, now: u64) -> BreakerState {
        match &self.opened {
            None => BreakerState::Closed,
            Some(opened) if now.saturating_sub(opened.since) > limits.reset_ms => {
                BreakerState::HalfOpen
            }
            Some(_) => BreakerState::Open,
        }
    }

    /// Whether a task may speculate at `now`.
    pub fn can_proceed(&self, limits: BreakerLimits, now: u64) -> bool {
        match self.state(limits, now) {
            BreakerState::Closed => true,
            BreakerState::Open => false,
            BreakerState::HalfOpen => self.probe().is_none(),
        }
    }

    /// A task speculates: it is the probe if the breaker is half open.
    pub fn proceed(&mut self, limits: BreakerLimits, now: u64, task: TaskId) {
        if self.state(limits, now) == BreakerState::HalfOpen
            && let Some(opened) = &mut self.opened
        {
            opened.probe = Some(task);
        }
    }

    /// The details of the opening; `None` if it is closed.
    pub const fn opened(&self) -> Option<&Opened> {
        self.opened.as_ref()
    }

    /// The current probe, when half open.
    pub fn probe(&self) -> Option<TaskId> {
        self.opened.as_ref()?.probe
    }

    /// The time at which it lets a task through, in milliseconds; `None` if it is closed, waits for
    /// the probe's outcome, or is held.
    pub fn lets_through_at(&self, limits: BreakerLimits) -> Option<u64> {
        let opened = self.opened.as_ref().filter(|opened| opened.probe.is_none())?;
        if limits.held != Override::None {
            return None;
        }
        Some(opened.since.saturating_add(limits.reset_ms).saturating_add(1))
    }

    /// Tasks were undone without a failure: if the probe is among them, another task may be the
    /// probe.
    pub fn release(&mut self, undone: &[TaskId]) {
        if let Some(opened) = &mut self.opened
            && opened.probe.is_some_and(|probe| undone.contains(&probe))
        {
            opened.probe = None;
        }
    }

    /// A task failed; `undone` are all tasks undone with it, including itself.
    pub fn record_failure(
        &mut self,
        limits: BreakerLimits,
        failure: TaskFailure,
        undone: &[TaskId],
    ) {
        let now = failure.at;
        if self.probe().is_some_and(|probe| undone.contains(&probe)) {
            let failures = vec![failure];
            return self.open(now, BreakerCause::Probe, failures);
        }
        match (self.own_state(limits, now), &mut self.opened) {
            (BreakerState::Open, Some(opened)) => {
                opened.since = now;
                opened.failures.push(failure);
                last(&mut opened.failures, REMEMBERED);
            }
            (BreakerState::Closed, _) => {
                self.failures.retain(|one| now.saturating_sub(one.at) <= WINDOW_MS);
                self.failures.push(failure);
                if self.failures.len() as u64 >= limits.threshold {
                    let failures = std::mem::take(&mut self.failures);
                    self.open(now, BreakerCause::Failures, failures);
                }
            }
            // The breaker is half open, and the failure is not the probe's.
            _ => {}
        }
    }

    /// Part of a bond was slashed.
    pub fn record_slash(&mut self, limits: BreakerLimits, lost: Wei, now: u64) {
        if self.opened.is_some() || lost.is_zero() {
            return;
        }
        self.slashes.retain(|one| now.saturating_sub(one.at) <= SLASH_WINDOW_MS);
        match self.slashes.last_mut() {
            Some(last) if now.saturating_sub(last.at) < SLASH_STEP_MS => {
                last.amount = last.amount.saturating_add(lost);
            }
            _ => self.slashes.push(Slash { at: now, amount: lost }),
        }
        let amounts = self.slashes.iter().map(|one| one.amount);
        let all = amounts.fold(Wei::ZERO, Wei::saturating_add);
        if limits.slash_limit > 0 && all > Wei::new(limits.slash_limit.into()) {
            let failures = std::mem::take(&mut self.failures);
            self.open(now, BreakerCause::Slashes, failures);
        }
    }

    /// A task was confirmed: closes the breaker if it is the probe.
    pub fn record_success(&mut self, task: TaskId) {
        if self.probe() == Some(task) {
            *self = Self::default();
        }
    }

    /// A task was resolved, with or without a rollback.
    pub fn record_outcome(&mut self, rolled_back: bool, now: u64) {
        self.outcomes = (self.outcomes << 1 | u64::from(rolled_back)) & ((1 << RATE_TASKS) - 1);
        self.resolved = (self.resolved + 1).min(RATE_TASKS);
        let above = self.rolled_back() * 100 > RATE_PERCENT * self.resolved;
        if self.opened.is_none() && self.resolved >= RATE_LEAST && above {
            let failures = std::mem::take(&mut self.failures);
            self.open(now, BreakerCause::Rate, failures);
        }
    }

    /// The number of tasks in the rate, and of rollbacks among them.
    pub fn rate(&self) -> (u64, u64) {
        (self.rolled_back(), self.resolved)
    }

    /// Whether this state is reachable under some limits; validates a snapshot.
    pub(super) fn is_sound(&self, now: u64) -> bool {
        let sound = |failures: &[TaskFailure], most: u64| {
            failures.is_sorted_by_key(|one| one.at)
                && failures.last().is_none_or(|one| one.at <= now)
                && failures.len() as u64 <= most
        };
        sound(&self.failures, MAX_THRESHOLD)
            && self.slashes.is_sorted_by_key(|one| one.at)
            && self.slashes.last().is_none_or(|one| one.at <= now)
            && self.slashes.len() as u64 <= SLASH_WINDOW_MS / SLASH_STEP_MS + 2
            && self.resolved <= RATE_TASKS
            && self.outcomes >> self.resolved == 0
            && self.opened.as_ref().is_none_or(|opened| {
                sound(&opened.failures, REMEMBERED as u64)
                    && opened.since <= now
                    && opened.rolled_back <= opened.resolved
                    && opened.resolved <= RATE_TASKS
                    && self.failures.is_empty()
                    && self.slashes.is_empty()
            })
    }

    fn rolled_back(&self) -> u64 {
        self.outcomes.count_ones().into()
    }

    fn open(&mut self, now: u64, cause: BreakerCause, mut failures: Vec<TaskFailure>) {
        last(&mut failures, REMEMBERED);
        let (rolled_back, resolved) = self.rate();
        let opened = Opened { since: now, cause, failures, rolled_back, resolved, probe: None };
        *self = Self { opened: Some(opened), ..Self::default() };
    }
}

/// Drops all but the last `most` failures.
fn last(failures: &mut Vec<TaskFailure>, most: usize) {
    failures.drain(..failures.len().saturating_sub(most));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::Hash;

    const LIMITS: BreakerLimits = BreakerLimits { slash_limit: 1_000, ..BreakerLimits::DEFAULT };

    fn id(n: u8) -> TaskId {
        Hash([n; 32])
    }

    impl Breaker {
        fn fails(&mut self, task: u8, at: u64) {
            let failure = TaskFailure { task: id(task), reason: RollbackReason::ProofFailed, at };
            self.record_failure(LIMITS, failure, &[id(task)]);
        }
    }

    #[test]
    fn five_failures_open_it_only_within_a_minute() {
        let mut breaker = Breaker::default();
        for at in [0, 10_000, 20_000, 30_000, 60_001] {
            breaker.fails(1, at);
        }
        assert_eq!(breaker.state(LIMITS, 60_001), BreakerState::Closed);
        assert_eq!((breaker.opened(), breaker.lets_through_at(LIMITS)), (None, None));
        breaker.fails(2, 60_002);
        assert_eq!(breaker.state(LIMITS, 60_002), BreakerState::Open);
        let opened = breaker.opened().unwrap();
        let tasks: Vec<_> = opened.failures.iter().map(|one| one.task).collect();
        assert_eq!(
            (opened.cause, tasks),
            (BreakerCause::Failures, [1, 1, 1, 1, 2].map(id).to_vec())
        );
        assert_eq!(breaker.lets_through_at(LIMITS), Some(120_003));
        // A failure of a task that was already running.
        breaker.fails(3, 70_000);
        assert_eq!(breaker.lets_through_at(LIMITS), Some(130_001));
        assert_eq!(breaker.opened().unwrap().failures.len(), 6);
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
        let opened = breaker.opened().unwrap();
        let told = (opened.cause, opened.rolled_back, opened.resolved);
        assert_eq!(told, (BreakerCause::Rate, 2, 11));
    }

    #[test]
    fn slashes_within_an_hour_open_it_above_their_limit() {
        let mut breaker = Breaker::default();
        let mut loses = |amount: u128, at| {
            breaker.record_slash(LIMITS, Wei::new(amount), at);
            assert!(breaker.is_sound(at), "{breaker:?}");
            breaker.state(LIMITS, at)
        };
        assert_eq!(loses(600, 0), BreakerState::Closed);
        assert_eq!(loses(400, SLASH_WINDOW_MS), BreakerState::Closed, "at the limit");
        assert_eq!(loses(600, SLASH_WINDOW_MS + 1), BreakerState::Closed, "the first is over");
        for step in 2..200 {
            assert_eq!(loses(0, SLASH_WINDOW_MS + step), BreakerState::Closed);
        }
        assert_eq!(loses(1, SLASH_WINDOW_MS + 200), BreakerState::Open);
        assert_eq!(loses(1_000_000, SLASH_WINDOW_MS + 201), BreakerState::Open);
        assert_eq!(breaker.opened().unwrap().cause, BreakerCause::Slashes);
        // After it closes, the count starts from zero.
        let now = 2 * SLASH_WINDOW_MS;
        breaker.proceed(LIMITS, now, id(1));
        breaker.record_success(id(1));
        breaker.record_slash(LIMITS, Wei::new(1_000), now);
        assert_eq!(breaker.state(LIMITS, now), BreakerState::Closed);
        // Many small slashes within the hour are merged into few.
        for at in 0..10_000 {
            breaker.record_slash(
                BreakerLimits { slash_limit: 0, ..LIMITS },
                Wei::new(9),
                now + at * 997,
            );
            assert!(breaker.is_sound(now + at * 997));
        }
        assert_eq!(breaker.state(LIMITS, now), BreakerState::Closed, "0 is no limit");
    }

    #[test]
    fn who_holds_it_decides_and_lets_it_go_as_it_would_be() {
        let mut breaker = Breaker::default();
        let (open, closed) = (
            BreakerLimits { held: Override::Open, ..LIMITS },
            BreakerLimits { held: Override::Closed, ..LIMITS },
        );
        assert!(!breaker.can_proceed(open, 0) && breaker.can_proceed(closed, 0));
        for n in 0..5 {
            let failure = TaskFailure { task: id(n), reason: RollbackReason::ProofFailed, at: 0 };
            breaker.record_failure(closed, failure, &[id(n)]);
        }
        assert!(breaker.can_proceed(closed, 0) && breaker.is_sound(0));
        assert_eq!(breaker.state(LIMITS, 0), BreakerState::Open, "the override ended");
        breaker.proceed(closed, 60_001, id(9));
        assert_eq!(breaker.probe(), None, "held, it probes nothing");
        assert_eq!(breaker.lets_through_at(open), None);
        assert!(!breaker.can_proceed(open, 60_001) && breaker.can_proceed(LIMITS, 60_001));
    }

    #[test]
    fn the_probe_alone_decides() {
        let mut breaker = Breaker::default();
        (0..5).for_each(|n| breaker.fails(n, 0));
        assert!(!breaker.can_proceed(LIMITS, 60_000));
        assert!(breaker.can_proceed(LIMITS, 60_001));
        // Before the probe is let through, other tasks' outcomes do not matter.
        breaker.record_success(id(7));
        breaker.fails(8, 60_001);
        assert_eq!(breaker.state(LIMITS, 60_001), BreakerState::HalfOpen);
        breaker.proceed(LIMITS, 60_001, id(9));
        assert!(!breaker.can_proceed(LIMITS, 60_002));
        assert_eq!(breaker.lets_through_at(LIMITS), None);
        breaker.record_success(id(7));
        breaker.fails(8, 60_002);
        assert_eq!(breaker.state(LIMITS, 60_002), BreakerState::HalfOpen);
        // After a cancellation, another task may be the probe.
        breaker.release(&[id(9)]);
        assert!(breaker.can_proceed(LIMITS, 60_003));
        breaker.proceed(LIMITS, 60_003, id(10));
        let mut failed = breaker.clone();
        breaker.record_success(id(10));
        assert_eq!(breaker, Breaker::default());
        // The probe is undone with an ancestor that failed.
        let failure = TaskFailure { task: id(8), reason: RollbackReason::ProofFailed, at: 60_004 };
        failed.record_failure(LIMITS, failure, &[id(10), id(8)]);
        assert_eq!(failed.state(LIMITS, 60_004), BreakerState::Open);
        assert_eq!(failed.opened().unwrap().cause, BreakerCause::Probe);
        assert!(failed.is_sound(60_004));
    }
}

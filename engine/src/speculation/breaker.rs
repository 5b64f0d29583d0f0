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
    Probe,
    /// More than `breaker.slashLimit` was slashed within [`SLASH_WINDOW_MS`].
    Slashes,
}

names!(BreakerCause: Failures = "failures", Rate = "rate", Probe = "probe", Slashes = "slashes");

/// An operator's override.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Override {
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
mod tests;

//! The breaker's states, and what changes them.

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
    assert_eq!((opened.cause, tasks), (BreakerCause::Failures, [1, 1, 1, 1, 2].map(id).to_vec()));
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

//! Refusals and their names, and that no accepted task is lost.

use super::{
    super::{
        BreakerState, EngineOutput, ParentLink, Reason, RollbackReason, RunRequest,
        SubmissionResult, TaskId, breaker::BreakerCause,
    },
    CLAIM, PROOF, Speculation, id, machine, opening, oracle,
};
use crate::primitives::{Hash, Wei};

fn reason(machine: &mut Speculation, name: &str, parents: &[&str]) -> &'static str {
    machine.try_task(name, parents).unwrap_err().reason.name()
}

#[test]
fn pending_operations_are_bounded() {
    let mut machine = machine(&[("limits.maxPendingOps", "3")]);
    machine.done("A", &[]);
    machine.try_task("B", &[]).unwrap();
    machine.try_task("C", &[]).unwrap();
    assert_eq!(reason(&mut machine, "D", &[]), "maxPendingOperations");
    machine.confirm(id("A"), 0).unwrap();
    machine.try_task("D", &[]).unwrap();
    oracle::check(&machine);
}

#[test]
fn the_queue_of_proofs_is_bounded_and_takes_what_was_accepted() {
    let mut machine = machine(&[]);
    machine.config.queue_size = 2;
    for name in ["A", "B", "C"] {
        machine.try_task(name, &[]).unwrap();
    }
    for name in ["A", "B", "C"] {
        machine.complete(id(name), opening(id(name)), &PROOF, 0).unwrap();
    }
    assert_eq!(reason(&mut machine, "D", &[]), "queueSize");
    assert_eq!(machine.submissions().len(), 3);
    machine.confirm(id("A"), 0).unwrap();
    machine.confirm(id("B"), 0).unwrap();
    machine.try_task("D", &[]).unwrap();
}

#[test]
fn memory_is_bounded_and_comes_back_when_tasks_are_pruned() {
    let mut machine = machine(&[("limits.retainedTasks", "100000"), ("limits.gcIntervalMs", "1")]);
    machine.config.max_memory_mb = 1;
    let task = |n: u32| -> TaskId {
        let mut id = [0; 32];
        id[..4].copy_from_slice(&n.to_be_bytes());
        Hash(id)
    };
    let request = |n: u32| RunRequest::new(task(n), &[], CLAIM);
    let refused = (0..100_000).find_map(|n| {
        let refused = machine.schedule(request(n), 0).err();
        if refused.is_none() {
            machine.complete(task(n), opening(task(n)), &PROOF, 0).unwrap();
            machine.confirm(task(n), 0).unwrap();
            machine.take();
        }
        refused
    });
    assert_eq!(refused.unwrap().reason, Reason::MaxMemoryMb);
    assert!((1 << 20..1 << 21).contains(&machine.memory()), "{}", machine.memory());
    machine.config.max_memory_mb = 2;
    machine.schedule(request(100_000), 0).unwrap();
}

#[test]
fn resolved_tasks_are_pruned_oldest_first_but_not_under_live_ones() {
    let mut machine = machine(&[("limits.retainedTasks", "2"), ("limits.gcIntervalMs", "1000")]);
    for name in ["A", "B", "C", "D"] {
        machine.done(name, &[]);
    }
    machine.try_task("below", &["A"]).unwrap();
    for name in ["A", "B", "C", "D"] {
        machine.confirm(id(name), 0).unwrap();
    }
    machine.advance(999);
    assert_eq!(machine.graph().len(), 5);
    assert_eq!(machine.next_deadline(), Some(1_000));
    machine.advance(1_000);
    let known = |machine: &Speculation, name: &str| machine.graph().status(&id(name)).is_some();
    let kept: Vec<_> =
        ["A", "B", "C", "D", "below"].into_iter().filter(|name| known(&machine, name)).collect();
    assert_eq!(kept, ["A", "C", "D", "below"]);
    assert_eq!(machine.commitment(&id("B")), None);
    assert_eq!(reason(&mut machine, "late", &["B"]), "unknown_parent");
    machine.confirm(id("below"), 1_000).unwrap();
    machine.advance(2_000);
    let kept: Vec<_> =
        ["A", "C", "D", "below"].into_iter().filter(|name| known(&machine, name)).collect();
    assert_eq!(kept, ["A", "below"]);
    oracle::check(&machine);
}

#[test]
fn the_breaker_opens_upon_rollbacks_and_closes_upon_a_success() {
    let mut machine = machine(&[]);
    machine.done("root", &[]);
    for n in 0..5 {
        let name = format!("t{n}");
        machine.done(&name, &[]);
        machine.fail(id(&name), RollbackReason::ProofFailed, 0).unwrap();
    }
    assert_eq!(machine.breaker_state(), BreakerState::Open);
    assert!(machine.take().contains(&EngineOutput::Breaker(BreakerState::Open)));
    // Open: only tasks that need no speculation are accepted, and running tasks may finish.
    assert_eq!(reason(&mut machine, "child", &["root"]), "breaker_open");
    machine.try_task("alone", &[]).unwrap();
    machine.advance(60_001 - 30_000);
    assert_eq!(machine.breaker_state(), BreakerState::Open);
}

#[test]
fn the_half_open_breaker_lets_one_through_until_that_is_resolved() {
    let mut machine = half_open();
    machine.try_task("one", &["root"]).unwrap();
    assert_eq!(machine.breaker().probe(), Some(id("one")));
    assert_eq!(reason(&mut machine, "two", &["root"]), "breaker_open");
    // A cancellation decides nothing: another task may try.
    machine.fail(id("one"), RollbackReason::ManualCancel, 60_001).unwrap();
    machine.try_task("two", &["root"]).unwrap();
    // Nor does a task that did not speculate, whatever its outcome.
    machine.confirm(id("root"), 60_001).unwrap();
    assert_eq!(machine.breaker_state(), BreakerState::HalfOpen);
    machine.done("other", &[]);
    machine.fail(id("other"), RollbackReason::ProofFailed, 60_001).unwrap();
    assert_eq!(machine.breaker_state(), BreakerState::HalfOpen);
    assert_eq!(reason(&mut machine, "three", &["two"]), "breaker_open");
    let machine = Speculation::restore(&machine.snapshot(), 60_001).unwrap();
    oracle::check(&machine);

    let mut confirmed = machine.clone();
    confirmed.take();
    confirmed.confirm(id("two"), 60_002).unwrap();
    assert_eq!(confirmed.breaker_state(), BreakerState::Closed);
    assert!(confirmed.take().contains(&EngineOutput::Breaker(BreakerState::Closed)));
    confirmed.done("child", &["two"]);
    oracle::check(&confirmed);

    let mut failed = machine;
    failed.fail(id("two"), RollbackReason::ClaimExpired, 60_002).unwrap();
    assert_eq!(failed.breaker_state(), BreakerState::Open);
    let opened = failed.breaker().opened().unwrap();
    assert_eq!((opened.cause, opened.failures[0].task), (BreakerCause::Probe, id("two")));
    assert_eq!(failed.breaker().lets_through_at(failed.config().breaker), Some(120_003));
}

/// A machine with a half-open breaker and a live root.
fn half_open() -> Speculation {
    let mut machine = machine(&[("confirmationTimeoutMs", "300000")]);
    machine.done("root", &[]);
    for n in 0..5 {
        let name = format!("t{n}");
        machine.done(&name, &[]);
        machine.fail(id(&name), RollbackReason::ProofFailed, 0).unwrap();
    }
    machine.advance(60_001);
    assert_eq!(machine.breaker_state(), BreakerState::HalfOpen);
    machine
}

/// A probe that is undone with an ancestor counts as a failure.
#[test]
fn a_probe_that_goes_with_its_ancestor_opens_the_breaker() {
    let mut machine = half_open();
    machine.try_task("probe", &["root"]).unwrap();
    machine.fail(id("root"), RollbackReason::ProofFailed, 60_002).unwrap();
    assert_eq!(machine.breaker_state(), BreakerState::Open);
    assert_eq!(machine.breaker().opened().unwrap().cause, BreakerCause::Probe);
    oracle::check(&machine);
}

#[test]
fn the_same_refusal_of_the_same_task_counts_once() {
    let mut machine = machine(&[("enabled", "false")]);
    machine.done("A", &[]);
    let parents = [(id("A"), ParentLink::Reads)];
    let mut request = RunRequest::new(id("B"), &parents, CLAIM);
    for _ in 0..3 {
        let refused = machine.schedule(request, 0).unwrap_err();
        request.refused = Some(refused.reason);
    }
    let counted = |machine: &Speculation| machine.counters().tasks_rejected.iter().sum::<u64>();
    assert_eq!(counted(&machine), 1);
    machine.configure([("enabled", "true"), ("maxParallelBranches", "1")], 0).unwrap();
    machine.done("X", &["A"]);
    assert_eq!(machine.schedule(request, 0).unwrap_err().reason, Reason::TooManyBranches);
    assert_eq!(counted(&machine), 2);
}

#[test]
fn a_cancellation_does_not_count_against_speculation() {
    let mut machine = machine(&[]);
    for n in 0..20 {
        let name = format!("t{n}");
        machine.done(&name, &[]);
        machine.fail(id(&name), RollbackReason::ManualCancel, 0).unwrap();
    }
    assert_eq!((machine.breaker_state(), machine.breaker().rate()), (BreakerState::Closed, (0, 0)));
}

#[test]
fn disabled_is_the_synchronous_pipeline() {
    let mut machine = machine(&[("enabled", "false")]);
    machine.done("A", &[]);
    assert_eq!(reason(&mut machine, "B", &["A"]), "disabled");
    let (task, submission) = machine.submissions()[0];
    machine.answer(task, submission, SubmissionResult::Confirmed, 0).unwrap();
    machine.done("B", &["A"]);
    assert_eq!(machine.submissions()[0].0, id("B"));
}

#[test]
fn a_slash_is_followed_by_the_cooldown() {
    let mut machine = machine(&[("stake.cooldownPeriodMs", "1000")]);
    machine.done("root", &[]);
    machine.done("A", &[]);
    machine.fail(id("A"), RollbackReason::ProofFailed, 0).unwrap();
    assert_eq!(reason(&mut machine, "B", &["root"]), "cooldown");
    machine.try_task("alone", &[]).unwrap();
    machine.advance(1_000);
    machine.try_task("B", &["root"]).unwrap();
}

#[test]
fn a_share_of_the_tasks_is_rolled_out() {
    let mut machine = machine(&[("features.rolloutPercentage", "25")]);
    machine.done("root", &[]);
    let mut accepted = 0;
    for n in 0..1_000 {
        let name = format!("t{n}");
        if let Err(refused) = machine.try_task(&name, &["root"]) {
            assert_eq!(refused.reason, Reason::NotRolledOut);
            continue;
        }
        accepted += 1;
        machine.fail(id(&name), RollbackReason::ManualCancel, 0).unwrap();
    }
    assert!((200..300).contains(&accepted), "{accepted}");
}

#[test]
fn without_parallel_speculation_there_is_one_branch() {
    let mut machine = machine(&[("features.enableParallel", "false")]);
    machine.done("A", &[]);
    machine.done("B", &["A"]);
    assert_eq!(reason(&mut machine, "C", &["A"]), "too_many_branches");
}

#[test]
fn a_bond_beyond_all_money_is_more_than_anyone_has() {
    let most = u64::MAX.to_string();
    let mut machine = machine(&[("stake.stakePerDepth", &most), ("stake.maxStake", &most)]);
    machine.done("A", &[]);
    let refused = machine.try_task("B", &["A"]).unwrap_err();
    assert_eq!((refused.reason, refused.depth), (Reason::InsufficientStake, Some(1)));
}

#[test]
fn a_parent_named_twice_counts_once_and_is_read() {
    let mut machine = machine(&[]);
    machine.done("A", &[]);
    machine.done("B", &["A", "A"]);
    assert_eq!(machine.graph().parents(&id("B")).len(), 1);
    assert_eq!(machine.graph().branches(), 1);
    oracle::check(&machine);
}

#[test]
fn slashing_that_runs_away_ends_speculation_and_an_operator_may_hold_it() {
    let mut machine = machine(&[("breaker.slashLimit", "1000")]);
    machine.try_task("A", &[]).unwrap();
    machine.executed(id("A"), opening(id("A")), 0).unwrap();
    machine.take();
    machine.book_slash(Wei::new(1_000), 1);
    assert_eq!(machine.take(), []);
    machine.book_slash(Wei::new(1), 2);
    assert_eq!(machine.take(), [EngineOutput::Breaker(BreakerState::Open)]);
    let refused = machine.try_task("B", &["A"]).unwrap_err();
    assert_eq!(refused.reason, Reason::BreakerOpen);
    // The cause of the opening survives a restart.
    machine = Speculation::restore(&machine.snapshot(), 3).unwrap();
    assert_eq!(machine.breaker().opened().unwrap().cause, BreakerCause::Slashes);
    machine.take();
    machine.configure([("breaker.override", "closed")], 4).unwrap();
    assert_eq!(machine.take(), [EngineOutput::Breaker(BreakerState::Closed)]);
    machine.try_task("B", &["A"]).unwrap();
    machine.configure([("breaker.override", "open")], 5).unwrap();
    assert_eq!(machine.try_task("C", &["A"]).unwrap_err().reason, Reason::BreakerOpen);
    machine.configure([("breaker.override", "none"), ("breaker.slashLimit", "0")], 6).unwrap();
    assert_eq!(machine.breaker_state(), BreakerState::Open, "its own state");
    // Among the claims on live tasks, the first to expire counts.
    assert_eq!(machine.time_to_expiry(), Some(CLAIM - 6));
}

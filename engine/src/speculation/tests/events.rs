//! The components' events, and that enabling them changes nothing.

use super::{
    super::{Event, RollbackReason, SpeculationEventKind, SubmissionResult, TaskId},
    Speculation, id, machine, opening,
};
use crate::primitives::Wei;

fn told(machine: &mut Speculation) -> Vec<Event> {
    std::iter::from_fn(|| machine.poll_event()).collect()
}

/// Names of the events of a task, or of the machine.
fn names(events: &[Event], task: Option<TaskId>) -> Vec<&'static str> {
    let of = events.iter().filter(|event| event.task == task);
    of.map(|event| event.kind.name()).collect()
}

#[test]
fn every_component_tells_what_happens_in_the_order_of_happening() {
    let settings = [("breaker.threshold", "1"), ("retryDelayMs", "1000")];
    let (mut machine, mut silent) = (machine(&settings), machine(&settings));
    machine.tell_events();
    let mut events = Vec::new();
    for (of, tells) in [(&mut machine, true), (&mut silent, false)] {
        of.done("A", &[]);
        of.try_task("B", &["A"]).unwrap();
        of.executed(id("B"), opening(id("B")), 1).unwrap();
        of.proving(id("B"), 2).unwrap();
        of.proved(id("B"), &super::PROOF, 3).unwrap();
        let submission = |of: &mut Speculation| of.submissions()[0].1;
        let first = submission(of);
        of.answer(id("A"), first, SubmissionResult::Lost, 4).unwrap();
        of.advance(2_000);
        let second = submission(of);
        of.submitted(id("A"), second, 2_001).unwrap();
        of.try_task("wide", &["unknown"]).unwrap_err();
        of.answer(id("A"), second, SubmissionResult::Rejected, 2_002).unwrap();
        of.chain_lost(2_002, 2_003);
        of.chain_back(2_004);
        if tells {
            events = told(of);
        } else {
            assert_eq!(told(of), [], "events are not enabled");
        }
    }
    // Otherwise they are the same machine.
    assert_eq!(machine.take(), silent.take());
    assert_eq!(machine.snapshot(), silent.snapshot());

    let a = [
        "graph:added",
        "stake:locked",
        "task:scheduled",
        "commitment:created",
        "graph:changed",
        "task:completed",
        "commitment:updated",
        "proof:ready",
        "proof:submitting",
        "proof:backOff",
        "proof:ready",
        "proof:submitting",
        "commitment:updated",
        "proof:submitted",
        "proof:failed",
        "rollback:planned",
        "rollback:executing",
        "graph:changed",
        "commitment:updated",
        "proof:cancelled",
        "stake:slashed",
        "stake:released",
        "rollback:taskRolledBack",
        "task:failed",
        "rollback:completed",
    ];
    assert_eq!(names(&events, Some(id("A"))), a);
    let b = [
        "graph:added",
        "stake:locked",
        "task:scheduled",
        "commitment:created",
        "graph:changed",
        "task:completed",
        "proof:queued",
        "proof:proving",
        "commitment:updated",
        "proof:waiting",
        "graph:changed",
        "commitment:updated",
        "proof:cancelled",
        "stake:released",
        "rollback:taskRolledBack",
    ];
    assert_eq!(names(&events, Some(id("B"))), b);
    assert_eq!(names(&events, Some(id("wide"))), ["task:rejected"]);
    assert_eq!(names(&events, None), ["breaker:changed", "chain:lost", "chain:back"]);
    // Leaves first; the whole locked amount is slashed or released, to the last unit.
    let undone = events.iter().filter(|e| e.kind.name() == "rollback:taskRolledBack");
    let undone: Vec<_> = undone.map(|event| event.task).collect();
    assert_eq!(undone, [Some(id("B")), Some(id("A"))]);
    let (mut locked, mut slashed) = (Wei::ZERO, Wei::ZERO);
    for event in &events {
        match event.kind {
            SpeculationEventKind::StakeLocked { amount } => locked = locked.saturating_add(amount),
            SpeculationEventKind::StakeReleased { amount } => {
                locked = locked.saturating_sub(amount);
            }
            SpeculationEventKind::StakeSlashed { amount } => {
                (locked, slashed) = (locked.saturating_sub(amount), slashed.saturating_add(amount));
            }
            _ => {}
        }
        assert!(SpeculationEventKind::NAMES.contains(&event.kind.name()), "{event:?}");
    }
    assert_eq!((locked, slashed), (Wei::ZERO, machine.stake().slashed));
    assert!(events.is_sorted_by_key(|event| event.at));
}

#[test]
fn a_parent_tells_how_many_its_confirmation_unblocks() {
    let mut machine = machine(&[]);
    machine.tell_events();
    machine.done("A", &[]);
    machine.done("B", &["A"]);
    machine.done("C", &["A"]);
    machine.done("D", &["B", "C"]);
    machine.confirm(id("A"), 1).unwrap();
    let unblocked = |events: &[Event]| -> Vec<(Option<TaskId>, u64)> {
        let of = |event: &Event| match event.kind {
            SpeculationEventKind::AncestorConfirmed { unblocked } => Some((event.task, unblocked)),
            _ => None,
        };
        events.iter().filter_map(of).collect()
    };
    let events = told(&mut machine);
    assert_eq!(unblocked(&events), [(Some(id("A")), 2)]);
    assert!(names(&events, Some(id("A"))).ends_with(&["task:confirmed", "ancestor:confirmed"]));
    machine.confirm(id("B"), 2).unwrap();
    machine.confirm(id("C"), 3).unwrap();
    assert_eq!(unblocked(&told(&mut machine)), [(Some(id("C")), 1)]);
    machine.fail(id("D"), RollbackReason::ManualCancel, 4).unwrap();
    assert!(names(&told(&mut machine), Some(id("D"))).contains(&"task:failed"));
}

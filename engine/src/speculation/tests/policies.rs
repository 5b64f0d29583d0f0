//! The tasks that a rollback undoes under each policy, their order, and the next attempts.

use super::{
    super::{
        DependencyStatus, EngineOutput, ParentLink, RollbackReason, RunRequest,
        output::Confirmation,
    },
    CLAIM, PROOF, Speculation, id, machine, opening, oracle, undone,
};

const FAILED: RollbackReason = RollbackReason::ProofFailed;

#[test]
fn selective_spares_who_reads_nothing_of_what_failed() {
    let mut machine = machine(&[("rollbackPolicy", "selective")]);
    machine.done("A", &[]);
    machine.done("reads", &["A"]);
    machine.done_after("after", &["A"]);
    machine.done("reads the reader", &["reads"]);
    machine.done("reads who comes after", &["after"]);
    let names = ["A", "reads", "after", "reads the reader", "reads who comes after"];
    assert_eq!(machine.fail(id("A"), FAILED, 0), Ok(3));
    let plans = machine.plans();
    assert_eq!(undone(&plans[0], &names), ["reads the reader", "reads", "A"]);
    assert_eq!(machine.status("after"), DependencyStatus::Speculative);
    assert_eq!(machine.graph().depth(&id("reads who comes after")), Some(2));
    oracle::check(&machine);

    // The surviving task waits for the next attempt, and continues when that is confirmed.
    machine.done("A", &[]);
    assert_eq!(machine.confirm(id("A"), 0), Ok(Confirmation::Applied));
    let (task, _) = machine.submissions().pop().unwrap();
    assert_eq!(task, id("after"));
    oracle::check(&machine);
}

#[test]
fn who_only_comes_after_another_one_is_undone_before_it_nevertheless() {
    let mut machine = machine(&[("rollbackPolicy", "selective")]);
    machine.done("A", &[]);
    machine.done("B", &["A"]);
    let parents = [(id("A"), ParentLink::Reads), (id("B"), ParentLink::OrderOnly)];
    machine.schedule(RunRequest::new(id("C"), &parents, CLAIM), 0).unwrap();
    machine.fail(id("A"), FAILED, 0).unwrap();
    assert_eq!(undone(&machine.plans()[0], &["A", "B", "C"]), ["C", "B", "A"]);
}

#[test]
fn the_other_policies_take_all_that_is_below() {
    for policy in ["cascade", "checkpoint"] {
        let mut machine = machine(&[("rollbackPolicy", policy)]);
        machine.done("A", &[]);
        machine.done_after("after", &["A"]);
        assert_eq!(machine.fail(id("A"), FAILED, 0), Ok(2));
        assert_eq!(machine.status("after"), DependencyStatus::RolledBack);
    }
}

#[test]
fn a_checkpoint_keeps_an_output_for_the_next_attempt() {
    let settings = [("rollbackPolicy", "checkpoint"), ("limits.maxStateSnapshots", "2")];
    let mut machine = machine(&settings);
    machine.done("A", &[]);
    for name in ["B", "C", "D", "E"] {
        machine.done(name, &["A"]);
        assert!(name == "E" || machine.checkpoint(&id(name)));
    }
    assert!(machine.checkpoint(&id("A")));
    assert!(!machine.checkpoint(&id("nobody")));
    machine.fail(id("A"), FAILED, 0).unwrap();
    // Two outputs are kept; the trigger's own output is not, because it is what failed.
    let mut kept: Vec<_> = machine.checkpoints().map(|one| one.task).collect();
    kept.sort();
    let mut expected = vec![id("C"), id("D")];
    expected.sort();
    assert_eq!(kept, expected);
    assert_eq!(machine.try_task("A", &[]).unwrap().checkpoint, None);
    let again = machine.try_task("C", &["A"]).unwrap();
    assert_eq!((again.attempt, again.checkpoint), (2, Some(opening(id("C")))));
    assert_eq!(machine.checkpoints().count(), 1);
}

/// An output made from another input is useless, and is not kept for a later attempt either.
#[test]
fn a_checkpoint_serves_only_what_reads_the_same() {
    let mut machine = machine(&[("rollbackPolicy", "checkpoint")]);
    let reading = |machine: &mut Speculation, inputs: &str| {
        let parents = [(id("A"), ParentLink::Reads)];
        let request =
            RunRequest { inputs: id(inputs), ..RunRequest::new(id("B"), &parents, CLAIM) };
        machine.schedule(request, 0).unwrap().checkpoint
    };
    let again = |machine: &mut Speculation| {
        machine.fail(id("A"), FAILED, 0).unwrap();
        machine.done("A", &[]);
    };
    let complete = |machine: &mut Speculation| {
        machine.complete(id("B"), opening(id("B")), &PROOF, 0).unwrap();
        assert!(machine.checkpoint(&id("B")));
    };
    machine.done("A", &[]);
    assert_eq!(reading(&mut machine, "first"), None);
    complete(&mut machine);
    again(&mut machine);
    let mut same = machine.clone();
    assert_eq!(reading(&mut same, "first"), Some(opening(id("B"))));
    assert_eq!(reading(&mut machine, "second"), None);
    assert_eq!(machine.checkpoints().count(), 0);
    complete(&mut machine);
    again(&mut machine);
    let mut restored = Speculation::restore(&machine.snapshot(), 0).unwrap();
    assert_eq!(reading(&mut restored, "second"), Some(opening(id("B"))));
    oracle::check(&restored);
}

#[test]
fn under_other_policies_nothing_is_kept() {
    let mut machine = machine(&[]);
    machine.done("A", &[]);
    machine.done("B", &["A"]);
    machine.checkpoint(&id("B"));
    machine.fail(id("A"), FAILED, 0).unwrap();
    assert_eq!(machine.checkpoints().count(), 0);
}

#[test]
fn triggers_queue_and_each_task_is_undone_once() {
    let mut machine = machine(&[]);
    machine.done("A", &[]);
    machine.done("B", &["A"]);
    machine.done("X", &[]);
    for name in ["B", "X", "A", "A"] {
        machine.request_rollback(id(name), FAILED).unwrap();
    }
    let image = machine.snapshot();
    machine.advance(0);
    let expected = [vec!["B"], vec!["X"], vec!["A"]];
    let plans = machine.plans();
    let got: Vec<_> = plans.iter().map(|plan| undone(plan, &["A", "B", "X"])).collect();
    assert_eq!(got, expected);
    // A snapshot loses none of them.
    let mut restored = Speculation::restore(&image, 0).unwrap();
    assert_eq!(restored.plans().len(), 3);
}

#[test]
fn what_is_due_at_once_goes_roots_first() {
    let mut machine = machine(&[("confirmationTimeoutMs", "300000"), ("commitmentTtlMs", "1000")]);
    machine.done("A", &[]);
    machine.done("B", &["A"]);
    machine.advance(2_000);
    let plans = machine.plans();
    assert_eq!(plans.len(), 1);
    assert_eq!(undone(&plans[0], &["A", "B"]), ["B", "A"]);
}

#[test]
fn a_failed_task_cannot_come_to_wait_for_who_waits_for_it() {
    let mut machine = machine(&[("rollbackPolicy", "selective")]);
    machine.done("A", &[]);
    machine.done_after("B", &["A"]);
    machine.fail(id("A"), FAILED, 0).unwrap();
    let refused = machine.try_task("A", &["B"]).unwrap_err();
    assert_eq!(refused.reason.name(), "cycle");
    assert_eq!(
        refused.to_string(),
        format!("task {} would wait for itself: a parent of it depends on it", id("A"))
    );
    oracle::check(&machine);
}

#[test]
fn who_waits_for_a_failed_task_sinks_with_its_next_attempt() {
    let mut machine = machine(&[("rollbackPolicy", "selective")]);
    machine.done("A", &[]);
    machine.done_after("B", &["A"]);
    machine.done("C", &["B"]);
    machine.fail(id("A"), FAILED, 0).unwrap();
    machine.done("X", &[]);
    machine.done("Y", &["X"]);
    machine.done("A", &["Y"]);
    assert_eq!(machine.graph().depth(&id("C")), Some(4));
    oracle::check(&machine);
    machine.confirm(id("X"), 0).unwrap();
    assert_eq!(machine.graph().depth(&id("C")), Some(3));
    oracle::check(&machine);
}

#[test]
fn held_confirmations_run_down_the_chain_at_once() {
    let mut machine = machine(&[("maxDepth", "20")]);
    let names: Vec<String> = (0..20).map(|n| format!("t{n}")).collect();
    machine.done(&names[0], &[]);
    for pair in names.windows(2) {
        machine.done(&pair[1], &[&pair[0]]);
    }
    for name in names[1..].iter().rev() {
        assert_eq!(machine.confirm(id(name), 0), Ok(Confirmation::Held));
    }
    oracle::check(&machine);
    // A task that the chain has confirmed does not expire here, as long as its ancestors do not.
    machine.take();
    machine.advance(29_999);
    machine.confirm(id("t0"), 29_999).unwrap();
    let confirmed: Vec<_> = machine
        .take()
        .into_iter()
        .filter_map(|output| match output {
            EngineOutput::Confirmed { task, .. } => Some(task),
            _ => None,
        })
        .collect();
    assert_eq!(confirmed, names.iter().map(|name| id(name)).collect::<Vec<_>>());
    assert!(machine.stake().locked.is_zero());
    oracle::check(&machine);
}

#[test]
fn a_confirmation_of_what_was_rolled_back_is_reported() {
    let mut machine = machine(&[]);
    machine.try_task("A", &[]).unwrap();
    machine.complete(id("A"), opening(id("A")), &PROOF, 0).unwrap();
    machine.fail(id("A"), RollbackReason::ManualCancel, 0).unwrap();
    machine.take();
    machine.confirm(id("A"), 0).unwrap_err();
    assert_eq!(machine.take(), [EngineOutput::LateSuccess { task: id("A") }]);
}

//! The way from an output to a confirmed proof.

use super::{
    super::{
        CommitmentStatus, CompletionError, DependencyStatus, EngineOutput, ProofStatus,
        RollbackReason, SubmissionResult,
    },
    PROOF, Speculation, id, machine, opening, oracle,
};

#[test]
fn a_proof_is_asked_for_and_may_not_take_for_ever() {
    let mut machine = machine(&[("proof.timeoutMs", "5000")]);
    machine.try_task("A", &[]).unwrap();
    assert_eq!(machine.proving(id("A"), 0), Err(CompletionError::NoOutput(id("A"))));
    machine.proved(id("A"), &PROOF, 0).unwrap_err();
    machine.executed(id("A"), opening(id("A")), 0).unwrap();
    assert_eq!(machine.take(), [EngineOutput::Prove { task: id("A") }]);
    let commitment = machine.commitment(&id("A")).unwrap();
    assert_eq!((commitment.status, &commitment.proof), (CommitmentStatus::Created, &None));
    oracle::check(&machine);
    // The timeout starts with the prover, regardless of the time in the queue.
    machine.advance(100_000);
    assert_eq!(machine.task(&id("A")).unwrap().proof, ProofStatus::Queued);
    machine.proving(id("A"), 100_000).unwrap();
    oracle::check(&machine);
    let again = machine.proving(id("A"), 100_000);
    assert_eq!(again, Err(CompletionError::AlreadyCompleted(id("A"))));
    machine.advance(104_999);
    assert_eq!(machine.task(&id("A")).unwrap().proof, ProofStatus::Proving);
    machine.advance(105_000);
    let plans = machine.plans();
    assert_eq!(plans[0].summary.reason, RollbackReason::ProofTimeout);
    assert_eq!(plans[0].summary.slashed.get(), 50_000);
    let late = machine.proved(id("A"), &PROOF, 105_000);
    assert_eq!(late, Err(CompletionError::TaskNotActive(id("A"))));
    assert_eq!(machine.proving(id("A"), 105_000), late);
}

#[test]
fn a_proof_does_not_wait_for_a_prover_for_ever() {
    let mut machine = machine(&[("proof.queueTimeoutMs", "7000"), ("proof.timeoutMs", "5000")]);
    machine.try_task("A", &[]).unwrap();
    machine.executed(id("A"), opening(id("A")), 0).unwrap();
    assert_eq!(machine.next_deadline(), Some(7_000));
    let gauges = machine.gauges();
    assert_eq!((gauges.pending_proofs, gauges.queued_proofs, gauges.proving), (1, 1, 0));
    // After a restart it starts over in the queue.
    machine = Speculation::restore(&machine.snapshot(), 3_000).unwrap();
    assert_eq!(machine.take(), [EngineOutput::Prove { task: id("A") }]);
    assert_eq!(machine.next_deadline(), Some(10_000));
    machine.advance(10_000);
    assert_eq!(machine.plans()[0].summary.reason, RollbackReason::ProofTimeout);
    oracle::check(&machine);
}

#[test]
fn a_proof_that_comes_in_time_goes_out() {
    let mut machine = machine(&[]);
    machine.try_task("A", &[]).unwrap();
    machine.executed(id("A"), opening(id("A")), 0).unwrap();
    machine.take();
    let short = machine.proved(id("A"), &PROOF[1..], 10);
    assert_eq!(short, Err(CompletionError::BadProofSize { task: id("A"), got: 387 }));
    machine.proved(id("A"), &PROOF, 10).unwrap();
    assert_eq!(machine.proof(&id("A")), Some(&PROOF));
    let again = machine.proved(id("A"), &PROOF, 10);
    assert_eq!(again, Err(CompletionError::AlreadyCompleted(id("A"))));
    let (task, submission) = machine.submissions()[0];
    machine.submitted(task, submission, 20).unwrap();
    assert_eq!(machine.commitment(&task).unwrap().status, CommitmentStatus::Submitted);
    machine.answer(task, submission, SubmissionResult::Confirmed, 30).unwrap();
    // The proof of a confirmed task is dropped.
    assert_eq!(machine.proof(&task), None);
    assert_eq!(machine.task(&task).unwrap().proof, ProofStatus::Confirmed);
    assert_eq!(machine.counters().proofs_confirmed, 1);
}

#[test]
fn without_optimism_a_proof_is_asked_for_when_ancestors_are_confirmed() {
    let mut machine = machine(&[("features.enableOptimisticProofs", "false")]);
    machine.done("A", &[]);
    machine.try_task("B", &["A"]).unwrap();
    machine.executed(id("B"), opening(id("B")), 0).unwrap();
    let (task, submission) = machine.submissions()[0];
    assert_eq!(machine.task(&id("B")).unwrap().proof, ProofStatus::Held);
    oracle::check(&machine);
    machine.answer(task, submission, SubmissionResult::Confirmed, 0).unwrap();
    assert!(machine.take().contains(&EngineOutput::Prove { task: id("B") }));
    oracle::check(&machine);
}

#[test]
fn the_time_to_confirm_begins_with_the_submission() {
    let mut machine = machine(&[]);
    machine.done("A", &[]);
    let (task, submission) = machine.submissions()[0];
    machine.submitted(task, submission, 20_000).unwrap();
    machine.advance(49_999);
    assert_eq!(machine.status("A"), DependencyStatus::Speculative);
    machine.advance(50_000);
    assert_eq!(machine.plans()[0].summary.reason, RollbackReason::ProofTimeout);
    machine.submitted(task, submission, 50_000).unwrap_err();
}

#[test]
fn an_answer_to_an_earlier_attempt_is_not_one_to_this() {
    let mut machine = machine(&[]);
    machine.done("A", &[]);
    let (task, first) = machine.submissions()[0];
    machine.fail(task, RollbackReason::ManualCancel, 0).unwrap();
    machine.done("A", &[]);
    let stale = machine.answer(task, first, SubmissionResult::Rejected, 0).unwrap_err();
    assert_eq!((stale.task, stale.submission), (task, first));
    assert_eq!(machine.status("A"), DependencyStatus::Speculative);
}

#[test]
fn an_output_is_found_by_its_commitment_by_all_who_made_it() {
    let mut machine = machine(&[]);
    for name in ["A", "B", "C"] {
        machine.try_task(name, &[]).unwrap();
        let output = if name == "C" { id("other") } else { id("same") };
        machine.complete(id(name), opening(output), &PROOF, 0).unwrap();
    }
    assert_eq!(machine.committed_to(id("same")), [id("A"), id("B")]);
    assert_eq!(machine.committed_to(id("other")), [id("C")]);
    assert_eq!(machine.committed_to(id("nothing")), []);
    machine.fail(id("A"), RollbackReason::ProofFailed, 0).unwrap();
    machine.try_task("A", &[]).unwrap();
    assert_eq!(machine.committed_to(id("same")), [id("B")]);
}

#[test]
fn delivery_that_fails_for_good_is_a_failed_proof() {
    let mut machine = machine(&[("maxRetries", "2")]);
    machine.done("A", &[]);
    let (task, submission) = machine.submissions()[0];
    let answered = machine.answer(task, submission, SubmissionResult::Lost, 0).unwrap();
    assert_eq!(answered.retry_in_ms, Some(1_000));
    assert_eq!(machine.next_deadline(), Some(1_000));
    machine.advance(1_000);
    let (task, submission) = machine.submissions()[0];
    let answered = machine.answer(task, submission, SubmissionResult::Lost, 1_000).unwrap();
    assert_eq!(answered.retry_in_ms, None);
    let summary = machine.history().next().unwrap();
    assert_eq!((summary.reason, summary.slashed.get()), (RollbackReason::ProofFailed, 100_000));
    assert_eq!(machine.counters().proofs_failed, 1);
}

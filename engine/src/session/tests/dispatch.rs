//! Assignments and cancellations in flight, and their bounds.

use super::*;

#[test]
fn nothing_is_dispatched_twice_or_without_a_connection_or_without_bound() {
    let assign = |validator: &mut Validator, i: u32| validator.assign(assignment(i));
    assert_eq!(assign(&mut validator(), 0), Err(AssignError::NotEstablished));
    let mut pair = Pair::established();
    for i in 0..MAX_JOB_STREAMS as u32 {
        assert_eq!(assign(&mut pair.validator, i), Ok(()));
    }
    assert_eq!(assign(&mut pair.validator, 0), Err(AssignError::AlreadyDispatched));
    let one_more = MAX_JOB_STREAMS as u32;
    assert_eq!(assign(&mut pair.validator, one_more), Err(AssignError::TooManyStreams));
}

#[test]
fn a_job_that_another_validator_holds_is_cancelled_on_a_stream_of_its_own() {
    let mut pair = Pair::established();
    pair.answer = AckStatus::Duplicate;
    pair.assign(0);
    pair.validator_said();
    pair.runner_said();
    let reason = CancelReason::Expired;
    for i in 0..2 * MAX_JOB_STREAMS as u32 {
        pair.validator.cancel(&job(i), DEADLINE, reason).unwrap();
        pair.pump();
        let cancelled = RunnerEvent::Cancelled { job_id: job(i), deadline: DEADLINE, reason };
        assert_eq!(pair.runner_said(), [RunnerOutput::Event(cancelled)]);
    }
    assert_eq!(pair.validator_said(), []);
}

#[test]
fn a_proof_that_a_job_has_ended_comes_on_a_stream_of_its_own() {
    let proof = || Body::new(b"proof".to_vec()).unwrap();
    assert_eq!(validator().prove_end(job(0), proof()), Err(AssignError::NotEstablished));
    let mut pair = Pair::established();
    pair.assign(0);
    pair.validator.cancel(&job(0), DEADLINE, CancelReason::Expired).unwrap();
    pair.pump();
    pair.validator_said();
    pair.runner_said();
    for i in 0..2 * MAX_JOB_STREAMS as u32 {
        pair.validator.prove_end(job(i), proof()).unwrap();
        pair.pump();
        let shown = RunnerEvent::EndProved { job_id: job(i), proof: proof() };
        assert_eq!(pair.runner_said(), [RunnerOutput::Event(shown)]);
    }
    assert_eq!(pair.validator_said(), []);
}

#[test]
fn a_cancelled_job_stops_and_its_late_result_is_dropped() {
    let mut pair = Pair::established();
    pair.assign(0);
    pair.validator.cancel(&job(0), DEADLINE, CancelReason::Reassigned).unwrap();
    // The result crosses the cancellation on its way.
    assert!(pair.runner.deliver(&result(0)));
    pair.pump();
    assert_eq!(pair.validator_said(), [accepted(0)]);
    let cancelled = RunnerOutput::Event(RunnerEvent::Cancelled {
        job_id: job(0),
        deadline: DEADLINE,
        reason: CancelReason::Reassigned,
    });
    assert_eq!(pair.runner_said()[1..], [cancelled]);
}

#[test]
fn duplicates_and_rejects_end_the_stream_softly() {
    let mut pair = Pair::established();
    pair.answer = AckStatus::Duplicate;
    pair.assign(0);
    let reason = RejectReason::UnsupportedKind;
    pair.answer = AckStatus::Reject(reason);
    pair.assign(1);
    assert_eq!(
        pair.validator_said(),
        [
            outcome(0, DispatchOutcome::Duplicate),
            ValidatorOutput::Event(ValidatorEvent::Rejected(job_ack(
                "runner",
                1,
                AckStatus::Reject(reason)
            ))),
            outcome(1, DispatchOutcome::SoftFailure(Some(reason)))
        ]
    );
    assert!(!pair.runner.holds(&job(0)) && !pair.runner.holds(&job(1)));
    pair.head(100);
    assert_eq!(pair.validator_said().len(), 1, "only the ping");
}

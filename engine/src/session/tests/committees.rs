//! Commitments, reports of failed work, and questions to committees.

use super::*;
use crate::wire::{
    JobAggregate, JobAggregated, JobCommit, JobFailure, JobReveal, RawFrame, Reason,
    RevealedResult, Reveals, reveals_digest,
};

fn commit(i: u32) -> JobCommit {
    JobCommit::signed(CHAIN, &key("runner"), job(i), Height::new(20), result(i).commitment())
}

fn failure(i: u32) -> JobFailure {
    JobFailure::signed(CHAIN, &key("runner"), job(i), Reason::truncated("exited with 3"))
}

/// A reveal of job 0 by `name`.
fn reveal(name: &str) -> RevealedResult {
    let JobResult { result_data, runner_signed, .. } =
        JobResult::signed(CHAIN, &key(name), job(0), body(b"result"));
    RevealedResult { runner: key(name).address(), result_data, runner_signed }
}

fn reveals() -> Reveals {
    Reveals::new(vec![reveal("runner"), reveal("other")]).unwrap()
}

fn aggregated() -> JobAggregated {
    JobAggregated::signed(CHAIN, &key("runner"), job(0), &reveals().digest())
}

fn says(event: ValidatorEvent) -> ValidatorOutput {
    ValidatorOutput::Event(event)
}

/// Carries a question to the runner; returns the stream for the answer.
fn asked(pair: &mut Pair) -> StreamId {
    pair.pump();
    match pair.runner_said().as_slice() {
        [
            RunnerOutput::Event(
                RunnerEvent::RevealWanted { stream, .. }
                | RunnerEvent::AggregateWanted { stream, .. },
            ),
        ] => *stream,
        said => panic!("expected a question, got {said:?}"),
    }
}

#[test]
fn a_commitment_goes_where_a_result_would() {
    for chunk in [1, usize::MAX] {
        let mut pair = Pair { chunk, ..Pair::established() };
        pair.assign(0);
        assert!(pair.runner.commit(&commit(0)));
        pair.pump();
        let committed = says(ValidatorEvent::Committed(commit(0)));
        let success = outcome(0, DispatchOutcome::Success);
        assert_eq!(pair.validator_said(), [accepted(0), committed.clone(), success]);
        let delivered = RunnerOutput::Event(RunnerEvent::Delivered { job_id: job(0) });
        assert_eq!(pair.runner_said()[1..], *std::slice::from_ref(&delivered));

        // The stream is gone: it goes on a new one.
        assert!(pair.runner.commit(&commit(0)));
        pair.pump();
        assert_eq!(pair.validator_said(), [committed]);
        assert_eq!(pair.runner_said(), [delivered]);
    }
}

#[test]
fn a_report_of_failed_work_goes_where_a_result_would() {
    for chunk in [1, usize::MAX] {
        let mut pair = Pair { chunk, ..Pair::established() };
        pair.assign(0);
        assert!(pair.runner.fail(&failure(0)));
        pair.pump();
        let failed = says(ValidatorEvent::Failed(failure(0)));
        let success = outcome(0, DispatchOutcome::Success);
        assert_eq!(pair.validator_said(), [accepted(0), failed.clone(), success]);
        let delivered = RunnerOutput::Event(RunnerEvent::Delivered { job_id: job(0) });
        assert_eq!(pair.runner_said()[1..], *std::slice::from_ref(&delivered));

        // The stream is gone: it goes on a new one.
        assert!(pair.runner.fail(&failure(0)));
        pair.pump();
        assert_eq!(pair.validator_said(), *std::slice::from_ref(&failed));
        assert_eq!(pair.runner_said(), [delivered]);

        // The validator has given up on the dispatch.
        let stream = dispatched(&mut pair);
        outcomes_over_four_blocks(&mut pair.validator);
        pair.validator.handle_data(stream, &failure(0).to_frame());
        assert_eq!(pair.validator.poll_output(), Some(failed));
        assert_eq!(pair.validator.poll_output(), None);
    }
}

#[test]
fn a_commitment_on_its_way_when_the_connection_breaks_is_undelivered() {
    let mut pair = Pair::established();
    assert!(pair.runner.commit(&commit(0)));
    while pair.runner.poll_output().is_some() {}
    pair.runner.handle_connection_lost();
    let undelivered = RunnerOutput::Event(RunnerEvent::Undelivered { job_id: job(0) });
    assert_eq!(pair.runner.poll_output(), Some(undelivered));
    assert!(!pair.runner.commit(&commit(0)));
}

#[test]
fn a_late_commitment_still_counts() {
    let mut pair = Pair::established();
    let stream = dispatched(&mut pair);
    outcomes_over_four_blocks(&mut pair.validator);
    pair.validator.handle_data(stream, &commit(0).to_frame());
    let committed = says(ValidatorEvent::Committed(commit(0)));
    assert_eq!(pair.validator.poll_output(), Some(committed));
    assert_eq!(pair.validator.poll_output(), None);
}

#[test]
fn a_runner_shows_its_result_when_asked() {
    for chunk in [1, usize::MAX] {
        let mut pair = Pair { chunk, ..Pair::established() };
        assert_eq!(pair.validator.ask_reveal(job(0)), Ok(()));
        assert_eq!(pair.validator.ask_reveal(job(0)), Err(AssignError::AlreadyDispatched));
        let stream = asked(&mut pair);
        pair.runner.reveal(stream, Some(&result(0)));
        pair.pump();
        assert_eq!(pair.validator_said(), [says(ValidatorEvent::Revealed(result(0)))]);

        assert_eq!(pair.validator.ask_reveal(job(0)), Ok(()), "once more");
        let stream = asked(&mut pair);
        pair.runner.reveal(stream, None);
        pair.pump();
        assert_eq!(pair.validator_said(), []);
        assert_eq!(pair.validator.ask_reveal(job(0)), Ok(()), "and again");
        let stream = asked(&mut pair);
        pair.runner.reveal(stream, Some(&result(1)));
        pair.pump();
        assert_eq!(pair.validator_said(), [], "another job's result does not count");
        assert_eq!(pair.runner_said(), []);
    }
}

#[test]
fn an_aggregator_signs_or_does_not() {
    for chunk in [1, usize::MAX] {
        let mut pair = Pair { chunk, ..Pair::established() };
        assert_eq!(pair.validator.ask_aggregate(job(0), reveals()), Ok(()));
        assert_eq!(pair.validator.ask_reveal(job(0)), Ok(()), "that is another question");
        let same = pair.validator.ask_aggregate(job(0), reveals());
        assert_eq!(same, Err(AssignError::AlreadyDispatched));
        pair.pump();
        let said = pair.runner_said();
        let [
            RunnerOutput::Event(RunnerEvent::AggregateWanted { stream, aggregate }),
            RunnerOutput::Event(RunnerEvent::RevealWanted { .. }),
        ] = said.as_slice()
        else {
            panic!("expected two questions, got {said:?}");
        };
        assert_eq!(aggregate.reveals, reveals());
        pair.runner.aggregate(*stream, true);
        pair.pump();
        let digest = reveals().digest();
        let answer = aggregated();
        assert_eq!(pair.validator_said(), [says(ValidatorEvent::Aggregated { answer, digest })]);

        assert_eq!(pair.validator.ask_aggregate(job(0), reveals()), Ok(()));
        let stream = asked(&mut pair);
        pair.runner.aggregate(stream, false);
        pair.pump();
        assert_eq!((pair.validator_said(), pair.runner_said()), (vec![], vec![]));
    }
}

#[test]
fn a_question_that_is_not_answered_ends_without_consequences() {
    let mut pair = Pair::established();
    assert_eq!(pair.validator.ask_reveal(job(0)), Ok(()));
    assert_eq!(pair.validator.ask_aggregate(job(0), reveals()), Ok(()));
    let streams: Vec<_> = std::iter::from_fn(|| pair.validator.poll_output())
        .map(|output| match output {
            ValidatorOutput::Open { stream, .. } => stream,
            other => panic!("expected a new stream, got {other:?}"),
        })
        .collect();
    let said = outcomes_over_four_blocks(&mut pair.validator);
    assert_eq!(said[..3], [vec![], vec![], vec![]]);
    let finished = streams.iter().map(|stream| ValidatorOutput::Finish { stream: *stream });
    assert_eq!(said[3], finished.collect::<Vec<_>>());
    pair.validator.handle_data(streams[0], &result(0).to_frame());
    assert_eq!(pair.validator.poll_output(), None, "too late");
    assert_eq!(pair.validator.ask_reveal(job(0)), Ok(()));
    assert_eq!(pair.validator.ask_aggregate(job(0), reveals()), Ok(()));
}

#[test]
fn who_does_not_know_a_question_just_does_not_answer() {
    let mut pair = Pair::established();
    let stream = pair.runner.handle_opened().unwrap();
    // A frame of a later protocol version.
    pair.runner.handle_data(stream, &[0, 0, 0, 2, 0x85, 0xa0]);
    assert_eq!(pair.runner.poll_output(), None);
    pair.runner.handle_finished(stream);
    assert_eq!(pair.runner.poll_output(), Some(RunnerOutput::Finish { stream }));
}

#[test]
fn questions_and_dispatches_of_one_job_do_not_touch() {
    let mut pair = Pair::established();
    pair.assign(0);
    pair.runner_says.clear();
    pair.validator_says.clear();
    assert_eq!(pair.validator.ask_reveal(job(0)), Ok(()));
    pair.validator.cancel(&job(0), DEADLINE, CancelReason::Expired).unwrap();
    pair.pump();
    let said = pair.runner_said();
    let [
        RunnerOutput::Event(RunnerEvent::RevealWanted { stream, .. }),
        RunnerOutput::Event(RunnerEvent::Cancelled { .. }),
    ] = said.as_slice()
    else {
        panic!("expected a question and a cancellation, got {said:?}");
    };
    pair.runner.reveal(*stream, Some(&result(0)));
    pair.validator.cancel(&job(0), DEADLINE, CancelReason::Expired).unwrap();
    pair.pump();
    assert_eq!(pair.validator_said(), [says(ValidatorEvent::Revealed(result(0)))]);
}

#[test]
fn questions_are_bounded_and_leave_no_streams() {
    assert_eq!(validator().ask_reveal(job(0)), Err(AssignError::NotEstablished));
    let mut pair = Pair::established();
    for i in 0..4 * MAX_PEER_STREAMS as u32 {
        assert_eq!(pair.validator.ask_reveal(job(i)), Ok(()));
        let stream = asked(&mut pair);
        pair.runner.reveal(stream, (i % 2 == 0).then(|| result(i)).as_ref());
        pair.pump();
    }
    for i in 0..MAX_JOB_STREAMS as u32 {
        assert_eq!(pair.validator.ask_reveal(job(i)), Ok(()));
    }
    let one_more = pair.validator.ask_reveal(job(MAX_JOB_STREAMS as u32));
    assert_eq!(one_more, Err(AssignError::TooManyStreams));
}

#[test]
fn a_runner_refuses_each_wrong_question() {
    let check = |frames: &[Vec<u8>], expected: Option<GoodbyeReason>| {
        let mut pair = Pair::established();
        let stream = pair.runner.handle_opened().unwrap();
        pair.runner.handle_data(stream, &frames.concat());
        let end =
            std::iter::from_fn(|| pair.runner.poll_output()).find_map(|output| match output {
                RunnerOutput::Closed(end) => Some(end),
                _ => None,
            });
        assert_eq!(end, expected.map(End::Local));
    };
    let reveal_of = |name| JobReveal::signed(CHAIN, &key(name), job(0)).to_frame();
    let (good, bad) = (reveal_of("validator"), Some(GoodbyeReason::BadSignature));
    let malformed = Some(GoodbyeReason::MalformedFrame);
    check(std::slice::from_ref(&good), None);
    check(&[reveal_of("other")], bad);
    check(&[good.clone(), good.clone()], malformed);
    check(&[commit(0).to_frame()], malformed);
    check(&[failure(0).to_frame()], malformed);
    check(&[aggregated().to_frame()], malformed);

    let aggregate = |name, reveals| JobAggregate::signed(CHAIN, &key(name), job(0), reveals);
    check(&[aggregate("validator", reveals()).to_frame()], None);
    check(&[aggregate("other", reveals()).to_frame()], bad);
    check(&[aggregate("validator", reveals()).to_frame(), good], malformed);
    let foreign = RevealedResult { runner: key("other").address(), ..reveal("runner") };
    let foreign = Reveals::new(vec![reveal("runner"), foreign]).unwrap();
    check(&[aggregate("validator", foreign).to_frame()], bad);
    let of_another_job = JobAggregate { job_id: job(1), ..aggregate("validator", reveals()) };
    check(&[of_another_job.to_frame()], bad);
}

#[test]
fn a_validator_refuses_each_wrong_answer() {
    let check = |ask: fn(&mut Validator), frame: &[u8], expected: Option<GoodbyeReason>| {
        let mut pair = Pair::established();
        ask(&mut pair.validator);
        let stream = match pair.validator.poll_output() {
            Some(ValidatorOutput::Open { stream, bytes }) => {
                let mut reader = FrameReader::new(Channel::Job);
                let frame = reader.feed(&mut bytes.as_slice()).unwrap();
                assert!(frame.is_some_and(|frame: RawFrame| frame.kind() >= 0x80));
                stream
            }
            _ => pair.validator.handle_opened().unwrap(),
        };
        pair.validator.handle_data(stream, frame);
        let said = std::iter::from_fn(|| pair.validator.poll_output());
        let end = said.filter_map(|output| match output {
            ValidatorOutput::Closed(end) => Some(end),
            _ => None,
        });
        assert_eq!(end.last(), expected.map(End::Local));
    };
    let (bad, malformed) = (Some(GoodbyeReason::BadSignature), Some(GoodbyeReason::MalformedFrame));
    let nothing: fn(&mut Validator) = |_| {};
    let forged = JobCommit::signed(CHAIN, &key("other"), job(0), Height::new(20), Hash::ZERO);
    check(nothing, &forged.to_frame(), bad);
    let moved = JobCommit { deadline_block: Height::new(21), ..commit(0) }.to_frame();
    check(nothing, &moved, bad);
    check(nothing, &commit(0).to_frame(), None);
    check(nothing, &aggregated().to_frame(), malformed);
    check(nothing, &failure(0).to_frame(), None);
    let forged = JobFailure { reason: Reason::truncated("other"), ..failure(0) }.to_frame();
    check(nothing, &forged, bad);
    check(nothing, &JobReveal::signed(CHAIN, &key("runner"), job(0)).to_frame(), malformed);

    let reveal: fn(&mut Validator) = |validator| validator.ask_reveal(job(0)).unwrap();
    check(reveal, &result(0).to_frame(), None);
    let forged = JobResult::signed(CHAIN, &key("other"), job(0), body(b"x")).to_frame();
    check(reveal, &forged, bad);
    check(reveal, &result(1).to_frame(), malformed);
    check(reveal, &commit(0).to_frame(), malformed);
    check(reveal, &failure(0).to_frame(), malformed);
    check(reveal, &aggregated().to_frame(), malformed);

    let aggregate: fn(&mut Validator) =
        |validator| validator.ask_aggregate(job(0), reveals()).unwrap();
    check(aggregate, &aggregated().to_frame(), None);
    check(aggregate, &result(0).to_frame(), malformed);
    let digest = reveals_digest([(key("runner").address(), &b"result"[..])]);
    let of_less = JobAggregated::signed(CHAIN, &key("runner"), job(0), &digest).to_frame();
    check(aggregate, &of_less, bad);
    let ack = job_ack("runner", 0, AckStatus::Accepted).to_frame();
    check(aggregate, &ack, malformed);
}

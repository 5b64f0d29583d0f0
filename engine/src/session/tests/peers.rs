//! Peers that break the protocol, and several peers at once.

use super::*;

/// A runner's goodbye to a validator's frames.
fn runner_hears(frames: &[Vec<u8>]) -> Option<GoodbyeReason> {
    goodbye_to(&mut runner(), frames, |_, _| ())
}

#[test]
fn a_runner_refuses_a_wrong_validator() {
    let check = |hello: Hello, expected| {
        assert_eq!(runner_hears(&[hello.to_frame()]), expected);
    };
    let good = hello("validator", Role::Validator);
    check(good.clone(), None);
    check(Hello { version: 2, ..good.clone() }, Some(GoodbyeReason::UnsupportedVersion));
    check(Hello { party_role: Role::Runner, ..good.clone() }, Some(GoodbyeReason::WrongRole));
    check(hello("other", Role::Validator), Some(GoodbyeReason::IdentityMismatch));
    let reflected = Hello { challenge_nonce: RUNNER_NONCE, ..good.clone() };
    check(reflected, Some(GoodbyeReason::ReplayedNonce));

    let check = |frames: &[Vec<u8>], expected| {
        assert_eq!(runner_hears(&[&[good.to_frame()], frames].concat()), expected);
    };
    let ack = |name, challenge| ack(name, Role::Validator, challenge).to_frame();
    check(&[ack("validator", RUNNER_NONCE)], None);
    check(&[ack("validator", VALIDATOR_NONCE)], Some(GoodbyeReason::BadSignature));
    check(&[ack("other", RUNNER_NONCE)], Some(GoodbyeReason::IdentityMismatch));
    let pong = |name, runner| {
        let runner = key(runner).public_key();
        HeartbeatPong::signed(CHAIN, &key(name), HEAD, &runner).to_frame()
    };
    let acked = ack("validator", RUNNER_NONCE);
    check(&[pong("validator", "runner")], Some(GoodbyeReason::MalformedFrame));
    check(&[acked.clone(), pong("validator", "runner")], None);
    check(&[acked.clone(), pong("other", "runner")], Some(GoodbyeReason::BadSignature));
    check(&[acked.clone(), pong("validator", "other")], Some(GoodbyeReason::BadSignature));
    check(&[acked, vec![0, 1, 0, 1]], Some(GoodbyeReason::FrameTooLarge));
}

#[test]
fn a_certificate_of_another_key_than_the_expected_one_is_refused() {
    let config = RunnerConfig {
        chain_id: CHAIN,
        key: key("runner"),
        validator: key("validator").public_key(),
        certified: key("other").public_key(),
        heartbeats: Heartbeats::Signed,
        nonce: RUNNER_NONCE,
        head: HEAD,
    };
    let mut runner = Runner::new(config, 0);
    let hello = hello("validator", Role::Validator).to_frame();
    runner.handle_data(StreamId::CONTROL, &hello);
    let last = std::iter::from_fn(|| runner.poll_output()).last();
    let end = End::Local(GoodbyeReason::IdentityMismatch);
    assert_eq!(last, Some(RunnerOutput::Closed(end)));
}

#[test]
fn a_runner_takes_no_job_before_the_handshake_and_none_that_its_validator_did_not_sign() {
    let mut early = runner();
    assert_eq!(early.handle_opened(), None);

    let check = |frames: &[Vec<u8>], reason| {
        let mut pair = Pair::established();
        let stream = pair.runner.handle_opened().unwrap();
        for frame in frames {
            pair.runner.handle_data(stream, frame);
            let mut closed = None;
            while let Some(output) = pair.runner.poll_output() {
                match output {
                    RunnerOutput::Event(RunnerEvent::Assigned { stream, .. }) => {
                        pair.runner.answer(stream, AckStatus::Accepted);
                    }
                    RunnerOutput::Closed(end) => closed = Some(end),
                    _ => {}
                }
            }
            if let Some(end) = closed {
                assert_eq!(end, End::Local(reason));
                return;
            }
        }
        panic!("the connection goes on");
    };
    let own = key("runner").public_key();
    let unsigned = || assignment(0);
    let assignment = |name| JobAssignment::signed(CHAIN, &key(name), &own, unsigned()).to_frame();
    let cancel = |name, i| cancel(name, i, CancelReason::Expired).to_frame();
    let for_another = key("another").public_key();
    let for_another = JobAssignment::signed(CHAIN, &key("validator"), &for_another, unsigned());
    check(&[for_another.to_frame()], GoodbyeReason::BadSignature);
    let replaced = JobAssignment::signed(CHAIN, &key("validator"), &own, unsigned());
    let replaced = JobAssignment { job_spec: body(b"another"), ..replaced };
    check(&[replaced.to_frame()], GoodbyeReason::BadSignature);
    let content = (job(0), body(b"spec"), DEADLINE);
    let errand = Errand::signed(CHAIN, &key("agent"), &own, content.clone());
    let forged = Errand { deadline_block: HEAD, ..errand };
    check(&[forged.to_frame()], GoodbyeReason::BadSignature);
    let for_another = Errand::signed(CHAIN, &key("agent"), &key("another").public_key(), content);
    check(&[for_another.to_frame()], GoodbyeReason::BadSignature);
    let good = assignment("validator");
    check(&[assignment("other")], GoodbyeReason::BadSignature);
    check(&[cancel("other", 0)], GoodbyeReason::BadSignature);
    check(&[good.clone(), good.clone()], GoodbyeReason::MalformedFrame);
    check(&[good.clone(), cancel("other", 0)], GoodbyeReason::BadSignature);
    check(&[good.clone(), cancel("validator", 1)], GoodbyeReason::MalformedFrame);
    check(&[good, result(0).to_frame()], GoodbyeReason::MalformedFrame);
    check(&[vec![1, 0, 0, 1]], GoodbyeReason::FrameTooLarge);
}

#[test]
fn three_validators_dispatch_and_the_job_runs_once() {
    let mut table = JobTable::new(1);
    let mut pairs: Vec<_> = (0..3).map(|_| Pair::established()).collect();
    let offers: Vec<_> = pairs
        .iter_mut()
        .enumerate()
        .map(|(i, pair)| {
            let from = key(&format!("validator-{i}")).public_key();
            let attempt = ProposedAttempt { job_id: job(0), assigned_at: HEAD, deadline: DEADLINE };
            let offer = table.offer(&from, attempt, HEAD, || Ok(())).offer;
            pair.answer = offer.status().unwrap();
            pair.assign(0);
            offer
        })
        .collect();
    assert_eq!(offers, [Offer::Accept, Offer::Duplicate, Offer::Duplicate]);
    assert_eq!(pairs[0].validator_said(), [accepted(0)]);
    assert_eq!(pairs[1].validator_said(), [outcome(0, DispatchOutcome::Duplicate)]);

    // The validator that has the assignment disconnects before the result is there.
    pairs[0].validator.close(GoodbyeReason::ShuttingDown);
    pairs[0].pump();
    let done = table.finish(result(0)).unwrap();
    assert!(!pairs[0].runner.deliver(&done));
    assert!(pairs[1].runner.deliver(&done));
    pairs[1].pump();
    assert_eq!(
        pairs[1].validator_said(),
        [ValidatorOutput::Event(ValidatorEvent::Result(result(0)))]
    );
    assert_eq!(
        pairs[1].runner_said().last(),
        Some(&RunnerOutput::Event(RunnerEvent::Delivered { job_id: job(0) }))
    );
    table.delivered(&job(0), None);
    assert_eq!(table.undelivered().count(), 0);
}

#[test]
fn noise_ends_a_connection_and_never_a_process() {
    // A fixed linear congruential generator: the same noise on every machine.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut byte = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let template = result(0).to_frame();
    for _ in 0..200 {
        let mut noise = template.clone();
        for _ in 0..4 {
            let at = (usize::from(byte()) << 8 | usize::from(byte())) % noise.len();
            noise[at] = byte();
        }
        let mut pair = Pair::established();
        for stream in [StreamId::CONTROL, pair.validator.handle_opened().unwrap()] {
            pair.validator.handle_data(stream, &noise);
        }
        let stream = pair.runner.handle_opened().unwrap();
        for stream in [stream, StreamId::CONTROL] {
            pair.runner.handle_data(stream, &noise);
        }
        let says_result =
            |output| matches!(output, ValidatorOutput::Event(ValidatorEvent::Result(_)));
        assert!(!std::iter::from_fn(|| pair.validator.poll_output()).any(says_result));
    }
}

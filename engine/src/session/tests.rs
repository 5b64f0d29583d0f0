//! The two ends of a connection driven against each other, and each refusal.

mod committees;
mod dispatch;
mod heartbeats;
mod peers;
mod timing;

use super::{
    DispatchOutcome, End, HANDSHAKE_TIMEOUT_MS, MAX_JOB_STREAMS, MAX_PEER_STREAMS, Output, Session,
    StreamId,
    heartbeat::Heartbeats,
    jobs::{JobTable, Offer, ProposedAttempt},
    runner::{Runner, RunnerConfig, RunnerEvent, RunnerOutput},
    validator::{AssignError, Validator, ValidatorConfig, ValidatorEvent, ValidatorOutput},
};
use crate::{
    presence::Connectivity,
    primitives::{Hash, Height, SecretKey, Signature, keccak256},
    wire::{
        AckStatus, BackpressureSignal, Body, CancelReason, CapabilityChange, CapabilityDelta,
        Channel, Control, Errand, FrameReader, Goodbye, GoodbyeReason, HeartbeatKey, HeartbeatPing,
        HeartbeatPong, Hello, HelloAck, JobAck, JobAssignment, JobCancel, JobProgress, JobResult,
        KeyedPing, KeyedPong, Labels, Message, Percent, RejectReason, Role,
    },
};
use std::collections::BTreeMap;

const CHAIN: u64 = 7;
const RUNNER_NONCE: [u8; 32] = [1; 32];
const VALIDATOR_NONCE: [u8; 32] = [2; 32];
const HEAD: Height = Height::new(10);
const DEADLINE: Height = Height::new(60);

fn key(name: &str) -> SecretKey {
    SecretKey::derive(b"session", name)
}

fn job(i: u32) -> Hash {
    keccak256(&[&i.to_be_bytes()])
}

fn body(bytes: &[u8]) -> Body {
    Body::new(bytes.to_vec()).unwrap()
}

/// Job `i`, due 50 blocks later; unsigned.
fn assignment(i: u32) -> JobAssignment {
    JobAssignment {
        job_id: job(i),
        submitter: key("alice").address(),
        nonce: 0,
        job_spec: body(b"spec"),
        block_height: HEAD,
        deadline_block: DEADLINE,
        validator_signed: Signature([0; 65]),
    }
}

fn job_ack(name: &str, i: u32, status: AckStatus) -> JobAck {
    JobAck::signed(CHAIN, &key(name), (job(i), DEADLINE), status)
}

fn cancel(name: &str, i: u32, reason: CancelReason) -> JobCancel {
    JobCancel::signed(CHAIN, &key(name), (job(i), DEADLINE), reason)
}

fn result(i: u32) -> JobResult {
    JobResult::signed(CHAIN, &key("runner"), job(i), body(b"result"))
}

/// A key that both ends of a connection of version 2 know.
const HEARTBEAT_KEY: HeartbeatKey = HeartbeatKey([3; 32]);
const KEYED: Heartbeats = Heartbeats::Keyed(HEARTBEAT_KEY);

fn validator() -> Validator {
    validator_with(Heartbeats::Signed)
}

fn validator_with(heartbeats: Heartbeats) -> Validator {
    let config = ValidatorConfig {
        chain_id: CHAIN,
        key: key("validator"),
        certified: key("runner").public_key(),
        heartbeats,
        nonce: VALIDATOR_NONCE,
        head: HEAD,
        connectivity: Connectivity::DEFAULT,
    };
    Validator::new(config, 0)
}

fn runner() -> Runner {
    runner_with(Heartbeats::Signed)
}

fn runner_with(heartbeats: Heartbeats) -> Runner {
    let config = RunnerConfig {
        chain_id: CHAIN,
        key: key("runner"),
        validator: key("validator").public_key(),
        certified: key("validator").public_key(),
        heartbeats,
        nonce: RUNNER_NONCE,
        head: Height::GENESIS,
    };
    Runner::new(config, 0)
}

/// Two ends and the wire between them, which splits written bytes into chunks.
struct Pair {
    runner: Runner,
    validator: Validator,
    chunk: usize,
    admission: Result<(), GoodbyeReason>,
    /// The runner's answer to the next assignments.
    answer: AckStatus,
    /// Maps the runner's id of a stream to the validator's.
    streams: BTreeMap<StreamId, StreamId>,
    /// Outputs for the drivers' users.
    runner_says: Vec<RunnerOutput>,
    validator_says: Vec<ValidatorOutput>,
    /// Number of frames on the control stream, by type.
    control_frames: BTreeMap<u8, usize>,
}

impl Pair {
    fn new() -> Self {
        Self {
            runner: runner(),
            validator: validator(),
            chunk: usize::MAX,
            admission: Ok(()),
            answer: AckStatus::Accepted,
            streams: BTreeMap::new(),
            runner_says: Vec::new(),
            validator_says: Vec::new(),
            control_frames: BTreeMap::new(),
        }
    }

    fn established() -> Self {
        Self::new().connected()
    }

    /// A connection of version 2.
    fn keyed() -> Self {
        let (runner, validator) = (runner_with(KEYED), validator_with(KEYED));
        Self { runner, validator, ..Self::new() }.connected()
    }

    fn connected(self) -> Self {
        let mut pair = self;
        pair.pump();
        assert!(pair.runner.is_established() && pair.validator.is_established());
        pair.runner_says.clear();
        pair.validator_says.clear();
        pair
    }

    fn to_validator(&self, stream: StreamId) -> StreamId {
        self.streams[&stream]
    }

    fn to_runner(&self, stream: StreamId) -> StreamId {
        *self.streams.iter().find(|(_, theirs)| **theirs == stream).unwrap().0
    }

    fn count(&mut self, stream: StreamId, bytes: &[u8]) {
        if stream == StreamId::CONTROL {
            let (mut reader, mut chunk) = (FrameReader::new(Channel::Control), bytes);
            while let Some(frame) = reader.feed(&mut chunk).unwrap() {
                *self.control_frames.entry(frame.kind()).or_default() += 1;
            }
        }
    }

    /// Carries outputs between both ends until neither has any.
    fn pump(&mut self) {
        loop {
            if let Some(output) = self.runner.poll_output() {
                self.runner_output(output);
            } else if let Some(output) = self.validator.poll_output() {
                self.validator_output(output);
            } else {
                return;
            }
        }
    }

    fn runner_output(&mut self, output: RunnerOutput) {
        match output {
            RunnerOutput::Open { stream, bytes } => {
                let Some(theirs) = self.validator.handle_opened() else { return };
                self.streams.insert(stream, theirs);
                self.count(stream, &bytes);
                for chunk in bytes.chunks(self.chunk) {
                    self.validator.handle_data(theirs, chunk);
                }
            }
            RunnerOutput::Send { stream, bytes } => {
                self.count(stream, &bytes);
                for chunk in bytes.chunks(self.chunk) {
                    self.validator.handle_data(self.to_validator(stream), chunk);
                }
            }
            RunnerOutput::Finish { stream } => {
                self.validator.handle_finished(self.to_validator(stream));
            }
            RunnerOutput::Event(RunnerEvent::Assigned { stream, ref assignment }) => {
                assert_eq!(assignment.job_spec, body(b"spec"));
                self.runner.answer(stream, self.answer);
                self.runner_says.push(output);
            }
            RunnerOutput::Closed(_) => {
                self.validator.handle_connection_lost();
                self.runner_says.push(output);
            }
            output @ RunnerOutput::Event(_) => self.runner_says.push(output),
        }
    }

    fn validator_output(&mut self, output: ValidatorOutput) {
        match output {
            ValidatorOutput::Open { stream, bytes } => {
                let Some(theirs) = self.runner.handle_opened() else { return };
                self.streams.insert(theirs, stream);
                for chunk in bytes.chunks(self.chunk) {
                    self.runner.handle_data(theirs, chunk);
                }
            }
            ValidatorOutput::Send { stream, bytes } => {
                self.count(stream, &bytes);
                for chunk in bytes.chunks(self.chunk) {
                    self.runner.handle_data(self.to_runner(stream), chunk);
                }
            }
            ValidatorOutput::Finish { stream } => {
                self.runner.handle_finished(self.to_runner(stream));
            }
            ValidatorOutput::Event(ValidatorEvent::Admit { .. }) => {
                self.validator.handle_admission(self.admission);
            }
            ValidatorOutput::Closed(_) => {
                self.runner.handle_connection_lost();
                self.validator_says.push(output);
            }
            output @ ValidatorOutput::Event(_) => self.validator_says.push(output),
        }
    }

    fn assign(&mut self, i: u32) {
        self.validator.assign(assignment(i)).unwrap();
        self.pump();
    }

    fn head(&mut self, height: u64) {
        self.validator.handle_head(Height::new(height));
        self.pump();
    }

    /// The validator's outputs since the last call.
    fn validator_said(&mut self) -> Vec<ValidatorOutput> {
        std::mem::take(&mut self.validator_says)
    }

    /// The runner's outputs since the last call.
    fn runner_said(&mut self) -> Vec<RunnerOutput> {
        std::mem::take(&mut self.runner_says)
    }

    fn frames(&self, kind: u8) -> usize {
        self.control_frames.get(&kind).copied().unwrap_or(0)
    }
}

fn outcome(i: u32, outcome: DispatchOutcome) -> ValidatorOutput {
    ValidatorOutput::Event(ValidatorEvent::Outcome { job_id: job(i), outcome })
}

fn accepted(i: u32) -> ValidatorOutput {
    ValidatorOutput::Event(ValidatorEvent::Accepted { job_id: job(i) })
}

#[test]
fn a_handshake_ends_with_the_first_ping_in_chunks_of_any_size() {
    for chunk in [1, 2, 7, 64, usize::MAX] {
        let mut pair = Pair { chunk, ..Pair::new() };
        pair.pump();
        assert_eq!(
            pair.validator_said(),
            [
                ValidatorOutput::Event(ValidatorEvent::Established),
                ValidatorOutput::Event(ValidatorEvent::Pinged { height: HEAD })
            ]
        );
        assert_eq!(
            pair.runner_said(),
            [
                RunnerOutput::Event(RunnerEvent::Established),
                RunnerOutput::Event(RunnerEvent::Told { head: HEAD })
            ]
        );
        assert_eq!((pair.runner.next_timeout(), pair.validator.next_timeout()), (None, None));
        assert_eq!(pair.runner.told(), HEAD);
    }
}

#[test]
fn a_runner_ahead_of_a_validator_pings_once_per_height_all_the_same() {
    let mut pair = Pair::established();
    pair.runner.handle_head(Height::new(13));
    pair.pump();
    assert_eq!(
        pair.validator_said(),
        [ValidatorOutput::Event(ValidatorEvent::Pinged { height: Height::new(13) })]
    );
    for height in 11..=13 {
        pair.head(height);
    }
    assert_eq!(pair.validator_said(), []);
    pair.head(14);
    assert_eq!(
        pair.validator_said(),
        [ValidatorOutput::Event(ValidatorEvent::Pinged { height: Height::new(14) })]
    );
}

#[test]
fn load_and_capabilities_reach_the_validator() {
    let mut pair = Pair::established();
    let signal = JobTable::new(4).signal(true);
    pair.runner.backpressure(&signal);
    let change = CapabilityChange {
        removed_capabilities: Labels::new(["http"]).unwrap(),
        ..CapabilityChange::default()
    };
    pair.runner.capabilities(change.clone());
    pair.pump();
    let delta = CapabilityDelta::signed(CHAIN, &key("runner"), HEAD, change);
    assert_eq!(
        pair.validator_said(),
        [
            ValidatorOutput::Event(ValidatorEvent::Backpressure(signal)),
            ValidatorOutput::Event(ValidatorEvent::Capabilities(delta))
        ]
    );
}

#[test]
fn a_job_runs_from_assignment_to_result() {
    for chunk in [1, usize::MAX] {
        let mut pair = Pair { chunk, ..Pair::established() };
        pair.assign(0);
        assert!(pair.runner.holds(&job(0)));
        let half = Percent::new(50).unwrap();
        pair.runner.progress(job(0), half, None);
        assert!(pair.runner.deliver(&result(0)));
        pair.pump();
        let progress = JobProgress { job_id: job(0), fraction: half, detail: None };
        assert_eq!(
            pair.validator_said(),
            [
                accepted(0),
                ValidatorOutput::Event(ValidatorEvent::Progress(progress)),
                ValidatorOutput::Event(ValidatorEvent::Result(result(0))),
                outcome(0, DispatchOutcome::Success),
            ]
        );
        assert_eq!(
            pair.runner_said()[1..],
            [RunnerOutput::Event(RunnerEvent::Delivered { job_id: job(0) })]
        );
        // Everything was answered: nothing expires, and the job may be dispatched again.
        pair.head(100);
        pair.assign(0);
        let said = pair.validator_said();
        assert_eq!(
            said,
            [
                ValidatorOutput::Event(ValidatorEvent::Pinged { height: Height::new(100) }),
                accepted(0)
            ]
        );
    }
}

#[test]
fn streams_do_not_pile_up() {
    let mut pair = Pair::established();
    for i in 0..4 * MAX_PEER_STREAMS as u32 {
        pair.assign(i);
        assert!(pair.runner.deliver(&result(i)));
        pair.pump();
        assert!(pair.runner.deliver(&result(i)), "handed over once more");
        pair.pump();
    }
    assert!(pair.runner.is_established());
}

/// Dispatches job 0 without delivering the assignment to the runner.
fn dispatched(pair: &mut Pair) -> StreamId {
    pair.validator.assign(assignment(0)).unwrap();
    match pair.validator.poll_output() {
        Some(ValidatorOutput::Open { stream, .. }) => stream,
        other => panic!("expected a new stream, got {other:?}"),
    }
}

/// The validator's outputs about job 0 as its head advances by one block four times; pings are left
/// out.
fn outcomes_over_four_blocks(validator: &mut Validator) -> Vec<Vec<ValidatorOutput>> {
    let heights = 1..=Connectivity::DEFAULT.ack_timeout_blocks + 1;
    heights
        .map(|blocks| {
            validator.handle_head(HEAD.after(blocks));
            std::iter::from_fn(|| validator.poll_output())
                .filter(|output| !matches!(output, ValidatorOutput::Send { .. }))
                .collect()
        })
        .collect()
}

#[test]
fn silence_fails_hard_after_three_blocks_and_a_late_result_still_counts() {
    let mut pair = Pair::established();
    let stream = dispatched(&mut pair);
    let said = outcomes_over_four_blocks(&mut pair.validator);
    assert_eq!(said[..3], [vec![], vec![], vec![]]);
    assert_eq!(
        said[3],
        [outcome(0, DispatchOutcome::HardFailure), ValidatorOutput::Finish { stream }]
    );

    let ack = job_ack("runner", 0, AckStatus::Accepted).to_frame();
    pair.validator.handle_data(stream, &[ack, result(0).to_frame()].concat());
    assert_eq!(
        pair.validator.poll_output(),
        Some(ValidatorOutput::Event(ValidatorEvent::Result(result(0))))
    );
    assert_eq!(pair.validator.poll_output(), None);
}

#[test]
fn a_stream_that_ends_unanswered_fails_when_its_time_is_over() {
    let mut pair = Pair::established();
    let stream = dispatched(&mut pair);
    pair.validator.handle_reset(stream);
    let said = outcomes_over_four_blocks(&mut pair.validator);
    assert_eq!(said[..3], [vec![], vec![], vec![]]);
    assert_eq!(said[3][0], outcome(0, DispatchOutcome::HardFailure));
}

#[test]
fn any_frame_instead_of_an_ack_is_a_soft_failure() {
    let check = |frame: Vec<u8>, when: usize| {
        let mut pair = Pair::established();
        let stream = dispatched(&mut pair);
        pair.validator.handle_data(stream, &frame);
        let mut said = vec![std::iter::from_fn(|| pair.validator.poll_output()).collect()];
        said.extend(outcomes_over_four_blocks(&mut pair.validator));
        let soft =
            [outcome(0, DispatchOutcome::SoftFailure(None)), ValidatorOutput::Finish { stream }];
        for (block, said) in said.into_iter().enumerate() {
            assert_eq!(said, if block == when { &soft[..] } else { &[] }, "block {block}");
        }
    };
    check(result(0).to_frame(), 0);
    let progress = JobProgress { job_id: job(0), fraction: Percent::new(1).unwrap(), detail: None };
    check(progress.to_frame(), 0);
    // An extension: the runner is alive, and may still answer in time.
    check(vec![0, 0, 0, 1, 0x85], 4);
}

#[test]
fn a_result_whose_stream_died_is_handed_over_on_a_new_one() {
    let mut pair = Pair::established();
    pair.assign(0);
    let stream = pair.to_runner(StreamId::FIRST_OF_VALIDATOR);
    pair.runner.handle_reset(stream);
    pair.pump();
    let released = RunnerOutput::Event(RunnerEvent::Released { job_id: job(0) });
    assert_eq!(pair.runner_said()[1..], [released]);
    assert!(!pair.runner.holds(&job(0)));

    assert!(pair.runner.deliver(&result(0)));
    pair.pump();
    assert_eq!(
        pair.validator_said(),
        [accepted(0), ValidatorOutput::Event(ValidatorEvent::Result(result(0)))]
    );
    assert_eq!(
        pair.runner_said(),
        [RunnerOutput::Event(RunnerEvent::Delivered { job_id: job(0) })]
    );
}

#[test]
fn a_result_on_its_way_when_the_connection_breaks_is_undelivered() {
    let mut pair = Pair::established();
    pair.assign(0);
    assert!(pair.runner.deliver(&result(0)));
    pair.assign(1);
    pair.runner_says.clear();
    pair.runner.handle_connection_lost();
    let said: Vec<_> = std::iter::from_fn(|| pair.runner.poll_output()).collect();
    // Job 0 was delivered by the pump of the second assignment.
    assert_eq!(
        said,
        [
            RunnerOutput::Event(RunnerEvent::Released { job_id: job(1) }),
            RunnerOutput::Closed(End::Lost)
        ]
    );

    let mut pair = Pair::established();
    assert!(pair.runner.deliver(&result(2)));
    while pair.runner.poll_output().is_some() {}
    pair.runner.handle_connection_lost();
    let said: Vec<_> = std::iter::from_fn(|| pair.runner.poll_output()).collect();
    assert_eq!(
        said,
        [
            RunnerOutput::Event(RunnerEvent::Undelivered { job_id: job(2) }),
            RunnerOutput::Closed(End::Lost)
        ]
    );
    assert!(!pair.runner.deliver(&result(2)));
}

#[test]
fn either_side_can_say_goodbye() {
    let mut pair = Pair::established();
    pair.validator.close(GoodbyeReason::ShuttingDown);
    pair.pump();
    let local = End::Local(GoodbyeReason::ShuttingDown);
    let peer = End::Peer(GoodbyeReason::ShuttingDown);
    assert_eq!(pair.validator_said(), [ValidatorOutput::Closed(local)]);
    assert_eq!(pair.runner_said(), [RunnerOutput::Closed(peer)]);

    let mut pair = Pair::established();
    pair.runner.close(GoodbyeReason::ShuttingDown);
    pair.pump();
    assert_eq!(pair.runner_said(), [RunnerOutput::Closed(local)]);
    assert_eq!(pair.validator_said(), [ValidatorOutput::Closed(peer)]);
}

#[test]
fn a_half_open_handshake_is_dropped_after_five_seconds() {
    let mut stalled = (validator(), runner());
    stalled.0.handle_opened();
    while stalled.1.poll_output().is_some() {}
    assert_eq!(stalled.0.next_timeout(), Some(HANDSHAKE_TIMEOUT_MS));
    assert_eq!(stalled.1.next_timeout(), Some(HANDSHAKE_TIMEOUT_MS));
    stalled.0.handle_timeout(HANDSHAKE_TIMEOUT_MS - 1);
    stalled.1.handle_timeout(HANDSHAKE_TIMEOUT_MS - 1);
    assert_eq!((stalled.0.poll_output(), stalled.1.poll_output()), (None, None));
    stalled.0.handle_timeout(HANDSHAKE_TIMEOUT_MS);
    stalled.1.handle_timeout(HANDSHAKE_TIMEOUT_MS);
    let end = End::HandshakeTimeout;
    assert_eq!(stalled.0.poll_output(), Some(ValidatorOutput::Closed(end)));
    assert_eq!(stalled.1.poll_output(), Some(RunnerOutput::Closed(end)));
    assert_eq!((stalled.0.next_timeout(), stalled.1.next_timeout()), (None, None));
}

#[test]
fn the_admission_verdict_is_told_to_the_runner() {
    for reason in [
        GoodbyeReason::UnknownRunner,
        GoodbyeReason::Deregistered,
        GoodbyeReason::InsufficientStake,
        GoodbyeReason::NotInSubset,
        GoodbyeReason::ReplayedNonce,
        GoodbyeReason::RateLimited,
        GoodbyeReason::DuplicateConnection,
    ] {
        let mut pair = Pair { admission: Err(reason), ..Pair::new() };
        pair.pump();
        assert_eq!(pair.validator_said(), [ValidatorOutput::Closed(End::Local(reason))]);
        assert_eq!(pair.runner_said(), [RunnerOutput::Closed(End::Peer(reason))]);
    }
}

fn hello(name: &str, party_role: Role) -> Hello {
    Hello {
        version: 1,
        party_pubkey: key(name).public_key(),
        party_role,
        block_height: HEAD,
        challenge_nonce: if party_role == Role::Runner { RUNNER_NONCE } else { VALIDATOR_NONCE },
    }
}

fn ack(name: &str, role: Role, challenge: [u8; 32]) -> HelloAck {
    HelloAck::signed(CHAIN, &key(name), (1, role), HEAD, &challenge)
}

/// The reason in the `Goodbye` frame among bytes sent on the control stream.
fn goodbye_in(bytes: &[u8]) -> Option<GoodbyeReason> {
    let (mut reader, mut chunk) = (FrameReader::new(Channel::Control), bytes);
    while let Some(frame) = reader.feed(&mut chunk).unwrap() {
        if let Control::Goodbye(Goodbye { reason }) = Control::decode(&frame).unwrap() {
            return Some(reason);
        }
    }
    None
}

/// Feeds a session frames on the control stream; returns the reason of its goodbye.
fn goodbye_to<S: Session>(
    session: &mut S,
    frames: &[Vec<u8>],
    react: impl Fn(&mut S, S::Event),
) -> Option<GoodbyeReason> {
    let mut reason = None;
    for frame in frames {
        session.handle_data(StreamId::CONTROL, frame);
        while let Some(output) = session.poll_output() {
            match output {
                Output::Event(event) => react(session, event),
                Output::Send { bytes, .. } => reason = reason.or(goodbye_in(&bytes)),
                Output::Closed(end) => {
                    assert_eq!(end, End::Local(reason.expect("a goodbye comes first")));
                }
                Output::Open { .. } | Output::Finish { .. } => {}
            }
        }
    }
    reason
}

/// A validator's goodbye to a runner's frames.
fn validator_hears(frames: &[Vec<u8>]) -> Option<GoodbyeReason> {
    goodbye_of_validator(validator(), frames)
}

fn goodbye_of_validator(mut validator: Validator, frames: &[Vec<u8>]) -> Option<GoodbyeReason> {
    assert_eq!(validator.handle_opened(), Some(StreamId::CONTROL));
    goodbye_to(&mut validator, frames, |validator, event| {
        if let ValidatorEvent::Admit { .. } = event {
            validator.handle_admission(Ok(()));
        }
    })
}

#[test]
fn a_validator_refuses_each_wrong_hello() {
    let check = |hello: Hello, expected| {
        assert_eq!(validator_hears(&[hello.to_frame()]), expected);
    };
    let good = hello("runner", Role::Runner);
    check(good.clone(), None);
    check(Hello { version: 2, ..good.clone() }, Some(GoodbyeReason::UnsupportedVersion));
    check(Hello { party_role: Role::Validator, ..good.clone() }, Some(GoodbyeReason::WrongRole));
    check(hello("other", Role::Runner), Some(GoodbyeReason::IdentityMismatch));
    let reflected = Hello { challenge_nonce: VALIDATOR_NONCE, ..good };
    check(reflected, Some(GoodbyeReason::ReplayedNonce));
}

#[test]
fn a_validator_refuses_each_wrong_ack() {
    let check = |ack: HelloAck, expected| {
        let frames = [hello("runner", Role::Runner).to_frame(), ack.to_frame()];
        assert_eq!(validator_hears(&frames), expected);
    };
    let good = ack("runner", Role::Runner, VALIDATOR_NONCE);
    check(good.clone(), None);
    check(HelloAck { version: 2, ..good.clone() }, Some(GoodbyeReason::UnsupportedVersion));
    check(HelloAck { party_role: Role::Validator, ..good }, Some(GoodbyeReason::WrongRole));
    let other = ack("other", Role::Runner, VALIDATOR_NONCE);
    check(other, Some(GoodbyeReason::IdentityMismatch));
    check(ack("runner", Role::Runner, RUNNER_NONCE), Some(GoodbyeReason::BadSignature));
}

#[test]
fn a_validator_refuses_each_wrong_control_frame() {
    let check = |frames: &[Vec<u8>], expected| {
        let shake = [
            hello("runner", Role::Runner).to_frame(),
            ack("runner", Role::Runner, VALIDATOR_NONCE).to_frame(),
        ];
        assert_eq!(validator_hears(&[&shake, frames].concat()), Some(expected));
    };
    let ping = |name, nonce| HeartbeatPing::signed(CHAIN, &key(name), HEAD, nonce).to_frame();
    check(&[ping("runner", 5), ping("runner", 5)], GoodbyeReason::ReplayedNonce);
    check(&[ping("runner", 5), ping("runner", 4)], GoodbyeReason::ReplayedNonce);
    check(&[ping("other", 5)], GoodbyeReason::BadSignature);
    let delta = CapabilityDelta::signed(CHAIN, &key("other"), HEAD, CapabilityChange::default());
    check(&[delta.to_frame()], GoodbyeReason::BadSignature);
    check(&[hello("runner", Role::Runner).to_frame()], GoodbyeReason::MalformedFrame);
    let pong = HeartbeatPong::signed(CHAIN, &key("runner"), HEAD, &key("runner").public_key());
    check(&[pong.to_frame()], GoodbyeReason::MalformedFrame);
    check(&[result(0).to_frame()], GoodbyeReason::MalformedFrame);
    check(&[vec![0, 0, 0, 1, 0x80]], GoodbyeReason::MalformedFrame);
    check(&[vec![0, 0, 0, 2, 0x10, 0xff]], GoodbyeReason::MalformedFrame);
    check(&[vec![0, 0, 0, 0]], GoodbyeReason::MalformedFrame);
    check(&[vec![0, 1, 0, 1]], GoodbyeReason::FrameTooLarge);
    check(&[vec![0xff; 4]], GoodbyeReason::FrameTooLarge);
}

#[test]
fn a_validator_hears_nothing_but_a_handshake_first() {
    let signal =
        BackpressureSignal { active_jobs: 0, max_concurrent: 0, accepting_new: true, reason: None };
    let early = HeartbeatPing::signed(CHAIN, &key("runner"), HEAD, 0).to_frame();
    let hello = hello("runner", Role::Runner).to_frame();
    let ack = ack("runner", Role::Runner, VALIDATOR_NONCE).to_frame();
    let malformed = Some(GoodbyeReason::MalformedFrame);
    assert_eq!(validator_hears(std::slice::from_ref(&early)), malformed);
    assert_eq!(validator_hears(std::slice::from_ref(&ack)), malformed);
    assert_eq!(validator_hears(&[hello.clone(), early]), malformed);
    assert_eq!(validator_hears(&[hello.clone(), signal.to_frame()]), malformed);
    assert_eq!(
        validator_hears(&[b"GET / HTTP/1.1\r\n".to_vec()]),
        Some(GoodbyeReason::FrameTooLarge)
    );
    // All frames at once, before the validator could have answered.
    assert_eq!(validator_hears(&[[hello, ack].concat()]), malformed);

    let mut validator = validator();
    validator.handle_opened();
    assert_eq!(validator.handle_opened(), None, "no job streams before the handshake");
    let end = End::Local(GoodbyeReason::MalformedFrame);
    assert_eq!(
        std::iter::from_fn(|| validator.poll_output()).last(),
        Some(ValidatorOutput::Closed(end))
    );
}

/// How an established validator ends the connection because of a frame on a job stream: on the
/// stream of job 0's assignment, or on one that the runner opens.
fn validator_hears_about_a_job(own_stream: bool, frames: &[Vec<u8>]) -> Option<End> {
    let mut pair = Pair::established();
    let assigned = dispatched(&mut pair);
    let stream = if own_stream { pair.validator.handle_opened().unwrap() } else { assigned };
    pair.validator.handle_data(stream, &frames.concat());
    std::iter::from_fn(|| pair.validator.poll_output()).find_map(|output| match output {
        ValidatorOutput::Closed(end) => Some(end),
        _ => None,
    })
}

#[test]
fn a_validator_refuses_each_wrong_job_frame() {
    let check = |own_stream, frames: &[Vec<u8>], reason| {
        let expected = Some(End::Local(reason));
        assert_eq!(validator_hears_about_a_job(own_stream, frames), expected);
    };
    let ack = |name, i| job_ack(name, i, AckStatus::Accepted).to_frame();
    let forged = JobResult::signed(CHAIN, &key("other"), job(0), body(b"x")).to_frame();
    check(false, &[ack("other", 0)], GoodbyeReason::BadSignature);
    check(false, &[ack("runner", 1)], GoodbyeReason::MalformedFrame);
    check(false, &[ack("runner", 0), ack("runner", 0)], GoodbyeReason::MalformedFrame);
    check(false, &[ack("runner", 0), result(1).to_frame()], GoodbyeReason::MalformedFrame);
    check(false, &[ack("runner", 0), forged.clone()], GoodbyeReason::BadSignature);
    let cancel = cancel("runner", 0, CancelReason::Failed).to_frame();
    let of_another_attempt =
        JobAck::signed(CHAIN, &key("runner"), (job(0), HEAD), AckStatus::Accepted).to_frame();
    check(false, &[of_another_attempt], GoodbyeReason::MalformedFrame);
    check(false, &[cancel], GoodbyeReason::MalformedFrame);
    check(false, &[hello("runner", Role::Runner).to_frame()], GoodbyeReason::MalformedFrame);
    check(false, &[vec![1, 0, 0, 1]], GoodbyeReason::FrameTooLarge);
    check(true, &[forged], GoodbyeReason::BadSignature);
    check(true, &[ack("runner", 0)], GoodbyeReason::MalformedFrame);
    check(true, &[vec![0, 0, 0, 1, 0x7f]], GoodbyeReason::MalformedFrame);
    let extension = vec![0, 0, 0, 1, 0xf0];
    assert_eq!(validator_hears_about_a_job(true, &[extension, result(9).to_frame()]), None);
}

#[test]
fn more_streams_than_may_be_end_the_connection() {
    let mut pair = Pair::established();
    for _ in 0..MAX_PEER_STREAMS {
        assert!(pair.validator.handle_opened().is_some());
        assert!(pair.runner.handle_opened().is_some());
    }
    assert_eq!((pair.validator.handle_opened(), pair.runner.handle_opened()), (None, None));
    pair.pump();
    let end = End::Local(GoodbyeReason::RateLimited);
    assert_eq!(pair.validator_said(), [ValidatorOutput::Closed(end)]);
    assert_eq!(pair.runner_said(), [RunnerOutput::Closed(end)]);
}

//! The frame decoder.

use crate::{play, random::Random};
use cowboy_engine::{
    primitives::{Hash, Height, SecretKey, Signature},
    session::heartbeat::Heartbeats,
    wire::{
        AckStatus, BackpressureSignal, Body, CancelReason, CapabilityChange, CapabilityDelta,
        Channel, Control, Errand, FrameReader, Goodbye, GoodbyeReason, HeartbeatKey, HeartbeatPing,
        HeartbeatPong, Hello, HelloAck, JobAck, JobAggregate, JobAggregated, JobAssignment,
        JobCancel, JobCommit, JobFailure, JobFrame, JobIds, JobProgress, JobProof, JobResult,
        JobReveal, Labels, Message, OpenJobs, Percent, RawFrame, Reason, RejectReason,
        RevealedResult, Reveals, Role, Text,
    },
};
use std::fs;

pub const CHAIN: u64 = 7;
/// The challenges of either side.
pub const RUNNERS_NONCE: [u8; 32] = [1; 32];
pub const VALIDATORS_NONCE: [u8; 32] = [2; 32];
/// The jobs that frames name.
pub const JOBS: [Hash; 3] = [Hash([3; 32]), Hash([4; 32]), Hash([5; 32])];

/// Heartbeats of the second version, under a key that both ends know.
pub const HEARTBEATS: Heartbeats = Heartbeats::Keyed(HeartbeatKey([6; 32]));

pub fn runner() -> SecretKey {
    SecretKey::derive(b"hostile", "runner")
}

pub fn validator() -> SecretKey {
    SecretKey::derive(b"hostile", "validator")
}

/// Results that a committee with the runner revealed for a job.
pub fn reveals(job_id: Hash) -> Reveals {
    let reveal = |key: SecretKey| {
        let body = Body::new(b"result".to_vec()).expect("it is short");
        let JobResult { result_data, runner_signed, .. } =
            JobResult::signed(CHAIN, &key, job_id, body);
        RevealedResult { runner: key.address(), result_data, runner_signed }
    };
    Reveals::new([runner(), validator()].map(reveal).to_vec()).expect("two short results")
}

/// A runner's frames, with valid signatures.
pub fn of_runner() -> Vec<Vec<u8>> {
    let key = runner();
    let hello = Hello {
        version: HEARTBEATS.version(),
        party_pubkey: key.public_key(),
        party_role: Role::Runner,
        block_height: Height::new(1),
        challenge_nonce: RUNNERS_NONCE,
    };
    let party = (HEARTBEATS.version(), Role::Runner);
    let ack = HelloAck::signed(CHAIN, &key, party, Height::new(1), &VALIDATORS_NONCE);
    let load = BackpressureSignal {
        active_jobs: 1,
        max_concurrent: 4,
        accepting_new: true,
        reason: Some(Text::truncated("busy")),
    };
    let change = CapabilityChange {
        removed_capabilities: Labels::new(["http", "custom"]).expect("two short names"),
        ..CapabilityChange::default()
    };
    let delta = CapabilityDelta::signed(CHAIN, &key, Height::new(2), change);
    let open = OpenJobs { job_ids: JobIds::first(JOBS) };
    let mut frames = vec![hello.to_frame(), ack.to_frame(), load.to_frame(), delta.to_frame()];
    frames.push(open.to_frame());
    for nonce in 1..6 {
        frames.push(HEARTBEATS.ping(CHAIN, &key, Height::new(nonce), nonce));
    }
    for job_id in JOBS {
        let statuses = [
            AckStatus::Accepted,
            AckStatus::Duplicate,
            AckStatus::Reject(RejectReason::AtCapacity),
        ];
        for status in statuses {
            frames.push(JobAck::signed(CHAIN, &key, (job_id, Height::new(11)), status).to_frame());
        }
        let fraction = Percent::new(50).expect("it is one");
        let detail = Some(Text::truncated("half"));
        frames.push(JobProgress { job_id, fraction, detail }.to_frame());
        let body = Body::new(b"result".to_vec()).expect("it is short");
        let result = JobResult::signed(CHAIN, &key, job_id, body);
        let commitment = result.commitment();
        let commit = JobCommit::signed(CHAIN, &key, job_id, Height::new(40), commitment);
        frames.push(commit.to_frame());
        frames.push(result.to_frame());
        let reason = Reason::truncated("exited with 3");
        frames.push(JobFailure::signed(CHAIN, &key, job_id, reason).to_frame());
        let digest = reveals(job_id).digest();
        frames.push(JobAggregated::signed(CHAIN, &key, job_id, &digest).to_frame());
    }
    frames.push(Goodbye { reason: GoodbyeReason::ShuttingDown }.to_frame());
    frames.push(vec![0, 0, 0, 2, 0x85, 7]);
    frames.push(HeartbeatPing::signed(CHAIN, &key, Height::new(6), 6).to_frame());
    frames
}

/// An unsigned assignment of a job that is due nine blocks later.
pub fn assignment(job_id: Hash, at: u64, spec: &[u8]) -> JobAssignment {
    JobAssignment {
        job_id,
        submitter: runner().address(),
        nonce: 0,
        job_spec: Body::new(spec.to_vec()).expect("it is short"),
        block_height: Height::new(at),
        deadline_block: Height::new(at + 9),
        validator_signed: Signature([0; 65]),
    }
}

/// An errand for the runner; the agent has the validator's key.
pub fn errand(label: Hash) -> Errand {
    let spec = Body::new(b"spec".to_vec()).expect("it is short");
    let content = (label, spec, Height::new(11));
    Errand::signed(CHAIN, &validator(), &runner().public_key(), content)
}

/// A validator's frames, with valid signatures.
pub fn of_validator() -> Vec<Vec<u8>> {
    let (key, runner) = (validator(), runner().public_key());
    let hello = Hello {
        version: HEARTBEATS.version(),
        party_pubkey: key.public_key(),
        party_role: Role::Validator,
        block_height: Height::new(1),
        challenge_nonce: VALIDATORS_NONCE,
    };
    let party = (HEARTBEATS.version(), Role::Validator);
    let ack = HelloAck::signed(CHAIN, &key, party, Height::new(1), &RUNNERS_NONCE);
    let mut frames = vec![hello.to_frame(), ack.to_frame()];
    for height in 1..6 {
        frames.push(HEARTBEATS.pong(CHAIN, &key, Height::new(height), &runner));
    }
    for job_id in JOBS {
        let assignment =
            JobAssignment::signed(CHAIN, &key, &runner, assignment(job_id, 2, b"spec"));
        frames.push(assignment.to_frame());
        let attempt = (job_id, assignment.deadline_block);
        frames.push(JobCancel::signed(CHAIN, &key, attempt, CancelReason::Expired).to_frame());
        let proof = Body::new(b"proof".to_vec()).expect("it is short");
        frames.push(JobProof { job_id, proof }.to_frame());
        frames.push(errand(job_id).to_frame());
        frames.push(JobReveal::signed(CHAIN, &key, job_id).to_frame());
        frames.push(JobAggregate::signed(CHAIN, &key, job_id, reveals(job_id)).to_frame());
    }
    frames.push(Goodbye { reason: GoodbyeReason::Deregistered }.to_frame());
    frames.push(vec![0, 0, 0, 1, 0xff]);
    frames.push(HeartbeatPong::signed(CHAIN, &key, Height::new(6), &runner).to_frame());
    frames
}

/// Decodes a frame and encodes it again; `None` if it is malformed.
fn again(channel: Channel, frame: &RawFrame) -> Option<Vec<u8>> {
    match channel {
        Channel::Control => Some(match Control::decode(frame).ok()? {
            Control::Hello(message) => message.to_frame(),
            Control::HelloAck(message) => message.to_frame(),
            Control::Ping(message) => message.to_frame(),
            Control::Pong(message) => message.to_frame(),
            Control::KeyedPing(message) => message.to_frame(),
            Control::KeyedPong(message) => message.to_frame(),
            Control::Backpressure(message) => message.to_frame(),
            Control::Capabilities(message) => message.to_frame(),
            Control::OpenJobs(message) => message.to_frame(),
            Control::Goodbye(message) => message.to_frame(),
        }),
        Channel::Job => Some(match JobFrame::decode(frame).ok()?? {
            JobFrame::Assignment(message) => message.to_frame(),
            JobFrame::Ack(message) => message.to_frame(),
            JobFrame::Progress(message) => message.to_frame(),
            JobFrame::Result(message) => message.to_frame(),
            JobFrame::Cancel(message) => message.to_frame(),
            JobFrame::Proof(message) => message.to_frame(),
            JobFrame::Errand(message) => message.to_frame(),
            JobFrame::Commit(message) => message.to_frame(),
            JobFrame::Reveal(message) => message.to_frame(),
            JobFrame::Aggregate(message) => message.to_frame(),
            JobFrame::Aggregated(message) => message.to_frame(),
            JobFrame::Failure(message) => message.to_frame(),
        }),
    }
}

/// Splits bytes into pieces of any size, as a stream delivers them.
pub fn pieces(random: &mut Random, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let len = if random.one_in(3) { rest.len() } else { 1 + random.below(rest.len()) };
        let (piece, more) = rest.split_at(len);
        pieces.push(piece.to_vec());
        rest = more;
    }
    pieces
}

#[test]
fn frames_are_read_in_their_one_form_or_refused() {
    let corpus = [of_runner(), of_validator()].concat();
    let mut read = [0u64; 2];
    play(|random| {
        let channel = *random.pick(&[Channel::Control, Channel::Job]);
        let mut bytes = Vec::new();
        for _ in 0..=random.below(4) {
            let whole = random.one_in(3);
            bytes.extend(if whole {
                random.pick(&corpus).clone()
            } else {
                random.mutated(&corpus)
            });
        }
        let mut reader = FrameReader::new(channel);
        for piece in pieces(random, &bytes) {
            let mut rest = piece.as_slice();
            while !rest.is_empty() {
                match reader.feed(&mut rest) {
                    Ok(Some(frame)) => {
                        assert!(frame.payload().len() < channel.limit());
                        if let Some(bytes) = again(channel, &frame) {
                            assert_eq!(bytes[4], frame.kind());
                            assert_eq!(&bytes[5..], frame.payload());
                            read[usize::from(channel == Channel::Job)] += 1;
                        }
                    }
                    Ok(None) => assert!(rest.is_empty(), "a piece is used up"),
                    // The connection ends here.
                    Err(_) => return,
                }
            }
        }
    });
    if std::env::var_os("COWBOYCTL_HOSTILE_CASE").is_none() {
        assert!(read.into_iter().all(|count| count > 100), "few frames are whole: {read:?}");
    }
}

/// The process's virtual memory, in bytes.
#[cfg(target_os = "linux")]
fn mapped() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").expect("Linux says so");
    let pages = pages.split(' ').next().expect("a word");
    pages.parse::<u64>().expect("a number") * 4_096
}

/// A length is only a claim: memory grows with the bytes that have arrived.
#[test]
#[cfg(target_os = "linux")]
fn a_claimed_length_takes_no_memory() {
    let before = mapped();
    let limit = u32::try_from(Channel::Job.limit()).expect("16 MiB");
    let mut readers: Vec<_> = (0..4_096).map(|_| FrameReader::new(Channel::Job)).collect();
    for reader in &mut readers {
        let bytes = [&limit.to_be_bytes()[..], &[0x23; 100]].concat();
        assert_eq!(reader.feed(&mut bytes.as_slice()), Ok(None));
    }
    let grown = mapped().saturating_sub(before);
    // They claim 64 GiB. Other tests of the process reserve some, too.
    assert!(grown < 4 << 30, "{grown} bytes for 4,096 frames with 100 bytes each");
}

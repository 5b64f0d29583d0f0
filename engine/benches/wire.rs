//! Costs of frames: `cargo bench -p cowboy-engine --bench wire`. The verification of signed frames
//! is compared with bare `secp256k1`, with the key and the signature parsed and the digest known.

use cowboy_engine::{
    primitives::{Hash, Height, SecretKey, Signature, keccak256},
    wire::{
        AckStatus, BackpressureSignal, Body, CancelReason, CapabilityChange, CapabilityDelta,
        Channel, Control, FrameReader, Goodbye, GoodbyeReason, HeartbeatKey, HeartbeatPing,
        HeartbeatPong, Hello, HelloAck, JobAck, JobAssignment, JobCancel, JobFrame, JobProgress,
        JobResult, KeyedPing, Labels, Message, Percent, Role, Text,
    },
};
use criterion::{Criterion, criterion_group, criterion_main};
use secp256k1::{Keypair, Message as Digest, ecdsa};
use std::hint::black_box;

const CHAIN: u64 = 24_601;
const HEIGHT: Height = Height::new(300);
const DEADLINE: Height = Height::new(364);
/// The size of a job's specification, and of its result.
const BODY_BYTES: usize = 1_024;

fn runner() -> SecretKey {
    SecretKey::derive(b"bench", "runner-0")
}

fn validator() -> SecretKey {
    SecretKey::derive(b"bench", "validator-0")
}

fn job_id() -> Hash {
    keccak256(&[b"job"])
}

fn body() -> Body {
    Body::new(vec![7; BODY_BYTES]).expect("far below the bound")
}

fn ping() -> HeartbeatPing {
    HeartbeatPing::signed(CHAIN, &runner(), HEIGHT, 1)
}

fn ack() -> JobAck {
    JobAck::signed(CHAIN, &runner(), (job_id(), DEADLINE), AckStatus::Accepted)
}

fn result() -> JobResult {
    JobResult::signed(CHAIN, &runner(), job_id(), body())
}

fn verify(c: &mut Criterion) {
    let mut group = c.benchmark_group("verify");
    let (secret, key) = (runner(), runner().public_key());
    let (ping, ack, result) = (ping(), ack(), result());
    assert!(ping.verify(CHAIN, &key) && ack.verify(CHAIN, &key) && result.verify(CHAIN, &key));

    let bare = Keypair::from_secret_bytes(secret.to_bytes()).expect("the same key").public_key();
    let digest = JobResult::digest(CHAIN, &job_id(), result.result_data.as_bytes());
    let Signature(bytes) = result.runner_signed;
    let signature = ecdsa::Signature::from_compact(&bytes[..64]).expect("r and s");
    group.bench_function("bare secp256k1", |b| {
        let (digest, signature) = black_box((Digest::from_digest(digest.0), &signature));
        b.iter(|| ecdsa::verify(signature, digest, &bare).is_ok());
    });
    group.bench_function("HeartbeatPing", |b| b.iter(|| black_box(&ping).verify(CHAIN, &key)));
    let heartbeat_key = HeartbeatKey([7; 32]);
    let keyed = KeyedPing::with_mac(CHAIN, &heartbeat_key, HEIGHT, 1);
    assert!(keyed.verify(CHAIN, &heartbeat_key));
    group.bench_function("KeyedPing", |b| {
        b.iter(|| black_box(&keyed).verify(CHAIN, &heartbeat_key));
    });
    group.bench_function("JobAck", |b| b.iter(|| black_box(&ack).verify(CHAIN, &key)));
    group.bench_function("JobResult", |b| b.iter(|| black_box(&result).verify(CHAIN, &key)));
    group.finish();
}

/// Writes a frame, finds it in a stream's bytes and reads it.
fn frame<M: Message>(c: &mut Criterion, message: M) {
    let bytes = message.to_frame();
    c.bench_function(&format!("encode/{}", M::NAME), |b| b.iter(|| black_box(&message).to_frame()));
    c.bench_function(&format!("decode/{}", M::NAME), |b| {
        b.iter(|| {
            let mut chunk = black_box(&bytes[..]);
            let found = FrameReader::new(M::CHANNEL).feed(&mut chunk);
            let frame = found.expect("a frame").expect("a whole one");
            match M::CHANNEL {
                Channel::Control => Control::decode(&frame).map(|frame| drop(black_box(frame))),
                Channel::Job => JobFrame::decode(&frame).map(|frame| drop(black_box(frame))),
            }
        });
    });
}

fn frames(c: &mut Criterion) {
    let (r, v) = (runner(), validator());
    let pubkey = r.public_key();
    let labels = |names: &[&str]| Labels::new(names.iter().copied()).expect("within the bounds");
    let change = CapabilityChange {
        added_capabilities: labels(&["http"]),
        removed_capabilities: labels(&["llm", "mcp"]),
        removed_entitlements: labels(&["pool-7"]),
        ..CapabilityChange::default()
    };
    frame(
        c,
        Hello {
            version: 2,
            party_pubkey: r.public_key(),
            party_role: Role::Runner,
            block_height: HEIGHT,
            challenge_nonce: [7; 32],
        },
    );
    frame(c, HelloAck::signed(CHAIN, &v, (2, Role::Validator), HEIGHT, &[7; 32]));
    frame(c, ping());
    frame(c, HeartbeatPong::signed(CHAIN, &v, HEIGHT, &pubkey));
    let reason = Some(Text::truncated("full"));
    frame(
        c,
        BackpressureSignal { active_jobs: 4, max_concurrent: 4, accepting_new: false, reason },
    );
    frame(c, CapabilityDelta::signed(CHAIN, &r, HEIGHT, change));
    let assignment = JobAssignment {
        job_id: job_id(),
        submitter: v.address(),
        nonce: 7,
        job_spec: body(),
        block_height: HEIGHT,
        deadline_block: DEADLINE,
        validator_signed: Signature([0; 65]),
    };
    frame(c, JobAssignment::signed(CHAIN, &v, &pubkey, assignment));
    frame(c, ack());
    let fraction = Percent::new(50).expect("no more than 100");
    frame(c, JobProgress { job_id: job_id(), fraction, detail: None });
    frame(c, result());
    frame(c, JobCancel::signed(CHAIN, &v, (job_id(), DEADLINE), CancelReason::Reassigned));
    frame(c, Goodbye { reason: GoodbyeReason::ShuttingDown });
}

criterion_group!(benches, verify, frames);
criterion_main!(benches);

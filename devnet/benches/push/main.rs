//! The time from opening a stream to the ack on it: an assignment pushed to a runner, compared with
//! the bare connection underneath and with HTTP.
//!
//! `cargo bench -p cowboy-devnet --bench push`
//!
//! * `frames`: a JobAssignment out and a JobAck back on a new stream of an authenticated
//!   connection, encoded and decoded, with signatures made in advance and not verified;
//! * `signed`: the same with the four signature operations: both frames are signed and verified;
//! * `quinn`: the same number of bytes on a new stream of a bare connection;
//! * `axum`: the same number of bytes in a warm POST with reqwest.
//!
//! Each runs once on one thread, shared by both ends, and once on two.

#[path = "../bare.rs"]
mod bare;
mod peers;

use bare::LOOPBACK;
use cowboy_devnet::transport::{
    Connection, Dial as _, Listen as _, RecvStream, SendStream,
    quic::{QuicClient, QuicConnection, QuicListener},
    tls::Identity,
};
use cowboy_engine::{
    primitives::{Hash, Height, SecretKey, Signature},
    wire::{AckStatus, Body, Channel, FrameReader, JobAck, JobAssignment, JobFrame, Message as _},
};
use criterion::{Criterion, async_executor::AsyncExecutor, criterion_group, criterion_main};
use peers::{Axum, Bare};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

const CHAIN: u64 = 7;
/// About as long as a command with a few arguments.
const SPEC: usize = 300;
const READ: usize = 64 * 1024;

/// The frames of both ends.
struct Words {
    assignment: JobAssignment,
    ack: JobAck,
    validator: SecretKey,
    runner: SecretKey,
    signs: bool,
}

impl Words {
    fn new(signs: bool) -> Self {
        let key = |name| SecretKey::derive(b"push", name);
        let (validator, runner, job_id) = (key("validator"), key("runner"), Hash([7; 32]));
        let spec = Body::new(vec![3; SPEC]).expect("shorter than a frame");
        let until = Height::new(140);
        let unsigned = JobAssignment {
            job_id,
            submitter: validator.address(),
            nonce: 0,
            job_spec: spec,
            block_height: Height::new(40),
            deadline_block: until,
            validator_signed: Signature([0; 65]),
        };
        let to = runner.public_key();
        Self {
            assignment: JobAssignment::signed(CHAIN, &validator, &to, unsigned),
            ack: JobAck::signed(CHAIN, &runner, (job_id, until), AckStatus::Accepted),
            validator,
            runner,
            signs,
        }
    }

    fn assignment(&self) -> Vec<u8> {
        if !self.signs {
            return self.assignment.to_frame();
        }
        let (unsigned, runner) = (self.assignment.clone(), self.runner.public_key());
        JobAssignment::signed(CHAIN, &self.validator, &runner, unsigned).to_frame()
    }

    fn ack(&self, assignment: &JobAssignment) -> Vec<u8> {
        if !self.signs {
            return self.ack.to_frame();
        }
        let (validator, runner) = (self.validator.public_key(), self.runner.public_key());
        assert!(assignment.verify(CHAIN, &validator, &runner), "the validator's");
        let attempt = (assignment.job_id, assignment.deadline_block);
        JobAck::signed(CHAIN, &self.runner, attempt, AckStatus::Accepted).to_frame()
    }

    fn acked(&self, ack: &JobAck) {
        assert!(!self.signs || ack.verify(CHAIN, &self.runner.public_key()), "the runner's");
    }
}

async fn frame(receive: &mut impl RecvStream) -> JobFrame {
    let mut reader = FrameReader::new(Channel::Job);
    loop {
        let bytes = receive.read(READ).await.expect("the peer goes on").expect("a frame");
        let mut rest = bytes.as_ref();
        if let Some(frame) = reader.feed(&mut rest).expect("a frame") {
            return JobFrame::decode(&frame).expect("a job's frame").expect("a known one");
        }
    }
}

/// The project's own transport: an authenticated connection whose runner acks every assignment.
struct Ours {
    connection: QuicConnection,
    words: Arc<Words>,
    _listener: QuicListener,
}

impl Ours {
    async fn connect(signs: bool) -> Self {
        let words = Arc::new(Words::new(signs));
        let identity = |key| Identity::new(key).expect("an identity");
        let mut listener =
            QuicListener::bind(&identity(&words.validator), LOOPBACK, |_| true).expect("a socket");
        let client = QuicClient::bind(LOOPBACK).expect("a socket");
        let dialer = client.dialer(identity(&words.runner));
        let (address, validator) = (listener.address(), words.validator.public_key());
        let answering = words.clone();
        tokio::spawn(async move {
            let connection = dialer.dial(address, &validator).await.expect("it listens");
            while let Ok((mut send, mut receive)) = connection.accept().await {
                let JobFrame::Assignment(assignment) = frame(&mut receive).await else { return };
                let ack = answering.ack(&assignment);
                send.write(&ack).await.expect("the validator reads");
                send.finish();
            }
        });
        let connection = listener.accept().await.expect("the runner connects");
        Self { connection, words, _listener: listener }
    }

    async fn push(&self) {
        let assignment = self.words.assignment();
        let (mut send, mut receive) = self.connection.open().await.expect("it is open");
        send.write(&assignment).await.expect("the runner reads");
        let JobFrame::Ack(ack) = frame(&mut receive).await else { panic!("no ack") };
        self.words.acked(&ack);
        send.finish();
    }
}

/// Runs criterion's futures on this runtime. Criterion's own feature for that is used by no other
/// build here, so criterion would have to be compiled a second time.
struct On<'a>(&'a Runtime);

impl AsyncExecutor for On<'_> {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.block_on(future)
    }
}

fn on(threads: usize) -> Runtime {
    let mut builder = match threads {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if threads > 1 {
        builder.worker_threads(threads);
    }
    builder.enable_all().build().expect("a runtime")
}

fn push(criterion: &mut Criterion) {
    let words = Words::new(false);
    let (out, back) = (words.assignment().len(), words.ack(&words.assignment).len());
    for threads in [1, 2] {
        let runtime = on(threads);
        let mut group = criterion.benchmark_group(format!("push, {threads} threads"));
        for (name, signs) in [("frames", false), ("signed", true)] {
            let ours = runtime.block_on(Ours::connect(signs));
            group.bench_function(name, |b| b.to_async(On(&runtime)).iter(|| ours.push()));
        }
        let bare = runtime.block_on(Bare::connect(out, back));
        group.bench_function("quinn", |b| b.to_async(On(&runtime)).iter(|| bare.push()));
        let axum = runtime.block_on(Axum::connect(out, back));
        group.bench_function("axum", |b| b.to_async(On(&runtime)).iter(|| axum.push()));
        group.finish();
    }
}

criterion_group!(benches, push);
criterion_main!(benches);

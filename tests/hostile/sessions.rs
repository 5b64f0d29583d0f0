//! The session machines, fed arbitrary frames in arbitrary order on arbitrary streams while their
//! drivers do arbitrary things.

use crate::{
    frames::{
        CHAIN, HEARTBEATS, JOBS, RUNNERS_NONCE, VALIDATORS_NONCE, assignment, errand, of_runner,
        of_validator, pieces, reveals, runner, validator,
    },
    play,
    random::Random,
};
use cowboy_engine::{
    presence::Connectivity,
    primitives::{Hash, Height},
    session::{
        DispatchOutcome, MAX_JOB_STREAMS, MAX_PEER_STREAMS, Output, Session, StreamId,
        runner::{Runner, RunnerConfig, RunnerEvent},
        validator::{Validator, ValidatorConfig, ValidatorEvent},
    },
    wire::{
        AckStatus, BackpressureSignal, Body, CancelReason, CapabilityChange, Channel, Errand,
        FrameReader, GoodbyeReason, JobAggregate, JobAggregated, JobAssignment, JobCancel,
        JobCommit, JobFailure, JobResult, JobReveal, Message as _, Percent, Reason, RejectReason,
    },
};
use std::collections::BTreeMap;

/// Maximum outputs of one input: each stream is written to and finished, plus a margin.
const MOST_OUTPUTS: usize = 4 * (MAX_JOB_STREAMS + MAX_PEER_STREAMS) + 16;

/// A machine, and the record of its outputs that the assertions need.
struct Played<S: Session> {
    session: S,
    /// All streams so far, each with a reader of the machine's output.
    streams: BTreeMap<StreamId, FrameReader>,
    over: bool,
    now: u64,
    head: u64,
}

impl<S: Session> Played<S> {
    fn new(session: S) -> Self {
        let streams = BTreeMap::new();
        Self { session, streams, over: false, now: 1_000, head: 1 }
    }

    /// Asserts that the machine's bytes on a stream are frames.
    fn wrote(&mut self, stream: StreamId, bytes: &[u8]) {
        let channel = if stream == StreamId::CONTROL { Channel::Control } else { Channel::Job };
        let reader = self.streams.entry(stream).or_insert_with(|| FrameReader::new(channel));
        let mut rest = bytes;
        while !rest.is_empty() {
            reader.feed(&mut rest).expect("machines write frames");
        }
    }

    /// Drains the machine's outputs, and returns its events.
    fn drain(&mut self) -> Vec<S::Event> {
        let mut events = Vec::new();
        let mut outputs = 0;
        while let Some(output) = self.session.poll_output() {
            assert!(!self.over, "nothing comes after the end");
            outputs += 1;
            assert!(outputs <= MOST_OUTPUTS, "{outputs} outputs of one input");
            match output {
                Output::Open { stream, bytes } | Output::Send { stream, bytes } => {
                    self.wrote(stream, &bytes);
                }
                Output::Finish { .. } => {}
                Output::Event(event) => events.push(event),
                Output::Closed(_) => self.over = true,
            }
        }
        events
    }

    /// An input that any driver may give.
    fn input(&mut self, random: &mut Random, corpus: &[Vec<u8>]) {
        let known: Vec<_> = self.streams.keys().copied().collect();
        match random.below(16) {
            0 | 1 => {
                if let Some(stream) = self.session.handle_opened() {
                    let channel = if known.is_empty() { Channel::Control } else { Channel::Job };
                    self.streams.entry(stream).or_insert_with(|| FrameReader::new(channel));
                }
            }
            2 if !known.is_empty() => self.session.handle_finished(*random.pick(&known)),
            3 if !known.is_empty() => self.session.handle_reset(*random.pick(&known)),
            4 => {
                self.head += random.below(4) as u64;
                self.session.handle_head(Height::new(self.head));
            }
            5 => {
                self.now += random.below(400) as u64;
                self.session.handle_timeout(self.now);
            }
            6 if random.one_in(20) => self.session.handle_connection_lost(),
            7 if random.one_in(20) => self.session.close(*random.pick(GoodbyeReason::ALL)),
            _ if !known.is_empty() => {
                let control = random.one_in(2) && known.contains(&StreamId::CONTROL);
                let stream = if control { StreamId::CONTROL } else { *random.pick(&known) };
                let whole = !random.one_in(8);
                let bytes =
                    if whole { random.pick(corpus).clone() } else { random.mutated(corpus) };
                for piece in pieces(random, &bytes) {
                    self.session.handle_data(stream, &piece);
                }
            }
            _ => {}
        }
    }

    /// The peer opens a stream and writes a valid or mutated frame.
    fn offer(&mut self, random: &mut Random, frames: &[Vec<u8>]) {
        let Some(stream) = self.open() else { return };
        let whole = random.one_in(2);
        let bytes = if whole { random.pick(frames).clone() } else { random.mutated(frames) };
        self.session.handle_data(stream, &bytes);
    }

    /// The peer writes on the stream that the machine opened last.
    fn answer(&mut self, frame: &[u8]) {
        let own = |stream: &&StreamId| stream.get() % 2 == 1;
        if let Some(stream) = self.streams.keys().rfind(own) {
            self.session.handle_data(*stream, frame);
        }
    }

    /// The peer opens a stream.
    fn open(&mut self) -> Option<StreamId> {
        let stream = self.session.handle_opened()?;
        let channel = if stream == StreamId::CONTROL { Channel::Control } else { Channel::Job };
        self.streams.entry(stream).or_insert_with(|| FrameReader::new(channel));
        Some(stream)
    }
}

/// The frames of these types.
fn of_kinds(frames: &[Vec<u8>], kinds: &[u8]) -> Vec<Vec<u8>> {
    frames.iter().filter(|frame| kinds.contains(&frame[4])).cloned().collect()
}

#[test]
fn a_validator_believes_nothing_that_was_not_signed() {
    let (own, peer) = (validator(), runner().public_key());
    let corpus = of_runner();
    let handed_over = of_kinds(&corpus, &[JobResult::KIND, JobCommit::KIND, JobFailure::KIND]);
    let answers = of_kinds(&corpus, &[JobResult::KIND, JobAggregated::KIND]);
    let (mut established, mut results, mut ended) = (0u64, 0u64, 0u64);
    let (mut commits, mut failures, mut answered) = (0u64, 0u64, 0u64);
    play(|random| {
        let config = ValidatorConfig {
            chain_id: CHAIN,
            key: own.clone(),
            certified: peer.clone(),
            heartbeats: HEARTBEATS,
            nonce: VALIDATORS_NONCE,
            head: Height::new(1),
            connectivity: Connectivity::DEFAULT,
        };
        let mut played = Played::new(Validator::new(config, 1_000));
        let (mut is_established, mut dispatches) = (false, BTreeMap::<Hash, (u32, u32)>::new());
        // Numbers of questions and answers, by job and whether it is asked for a signature.
        let mut questions = BTreeMap::<(Hash, bool), (u32, u32)>::new();
        let mut last = None;
        let mut answer = |questions: &mut BTreeMap<_, (u32, u32)>, question| {
            let (asked, told) = questions.get_mut(&question).expect("it was asked");
            *told += 1;
            assert!(told <= asked, "one answer to a question");
            answered += 1;
        };
        // Most cases complete the handshake, so that the later states are reached.
        let polite = !random.one_in(4);
        if polite {
            assert_eq!(played.open(), Some(StreamId::CONTROL), "the control stream is first");
            played.session.handle_data(StreamId::CONTROL, &corpus[0]);
        }
        for step in 0..60 {
            for event in played.drain() {
                match event {
                    ValidatorEvent::Admit { .. } => {
                        let verdict = match random.one_in(10) {
                            true => Err(*random.pick(GoodbyeReason::ALL)),
                            false => Ok(()),
                        };
                        played.session.handle_admission(verdict);
                    }
                    ValidatorEvent::Established => {
                        assert!(!is_established, "only once");
                        is_established = true;
                        established += 1;
                    }
                    ValidatorEvent::Result(result) => {
                        assert!(is_established && result.verify(CHAIN, &peer));
                        results += 1;
                    }
                    ValidatorEvent::Rejected(ack) => {
                        assert!(is_established && ack.verify(CHAIN, &peer));
                    }
                    ValidatorEvent::Committed(commit) => {
                        assert!(is_established && commit.verify(CHAIN, &peer));
                        commits += 1;
                    }
                    ValidatorEvent::Failed(failure) => {
                        assert!(is_established && failure.verify(CHAIN, &peer));
                        failures += 1;
                    }
                    ValidatorEvent::Revealed(result) => {
                        assert!(result.verify(CHAIN, &peer));
                        answer(&mut questions, (result.job_id, false));
                    }
                    ValidatorEvent::Aggregated { answer: signed, digest } => {
                        assert_eq!(digest, reveals(signed.job_id).digest());
                        assert!(signed.verify(CHAIN, &peer, &digest));
                        answer(&mut questions, (signed.job_id, true));
                    }
                    ValidatorEvent::Capabilities(delta) => {
                        assert!(is_established && delta.verify(CHAIN, &peer));
                    }
                    ValidatorEvent::Pinged { .. }
                    | ValidatorEvent::Open(_)
                    | ValidatorEvent::Backpressure(_)
                    | ValidatorEvent::Progress(_) => assert!(is_established),
                    ValidatorEvent::Accepted { job_id } => {
                        assert!(dispatches.contains_key(&job_id), "it was asked");
                    }
                    ValidatorEvent::Outcome { job_id, outcome } => {
                        let (asked, answered) = dispatches.get_mut(&job_id).expect("it was asked");
                        // An acceptance is not an outcome.
                        *answered += 1;
                        assert!(answered <= asked, "{outcome:?} once per assignment");
                        assert!(
                            !matches!(outcome, DispatchOutcome::SoftFailure(None))
                                || is_established
                        );
                    }
                }
            }
            assert_eq!(played.session.is_established(), is_established && !played.over);
            if step == 0 && polite {
                played.session.handle_data(StreamId::CONTROL, &corpus[1]);
                continue;
            }
            match random.below(12) {
                0 | 1 => {
                    let job_id = *random.pick(&JOBS);
                    let spec = vec![0; random.below(99)];
                    let assignment = assignment(job_id, played.head, &spec);
                    if played.session.assign(assignment).is_ok() {
                        dispatches.entry(job_id).or_default().0 += 1;
                    }
                }
                2 => {
                    let reason = *random.pick(CancelReason::ALL);
                    let deadline = Height::new(played.head);
                    // It is refused without an established connection.
                    let _ = played.session.cancel(random.pick(&JOBS), deadline, reason);
                }
                3 => played.offer(random, &handed_over),
                4 => {
                    let (job_id, aggregate) = (*random.pick(&JOBS), random.one_in(2));
                    let asked = match aggregate {
                        true => played.session.ask_aggregate(job_id, reveals(job_id)),
                        false => played.session.ask_reveal(job_id),
                    };
                    if asked.is_ok() {
                        questions.entry((job_id, aggregate)).or_default().0 += 1;
                        last = Some((job_id, aggregate));
                    }
                }
                5 => {
                    let kind = if last.is_some_and(|(_, aggregate)| aggregate) {
                        JobAggregated::KIND
                    } else {
                        JobResult::KIND
                    };
                    let fits = |frame: &&Vec<u8>| {
                        let about =
                            |(job, _): (Hash, bool)| frame.windows(32).any(|part| part == job.0);
                        frame[4] == kind && last.is_some_and(about)
                    };
                    let right = answers.iter().find(fits).filter(|_| !random.one_in(4));
                    played.answer(right.unwrap_or_else(|| random.pick(&answers)));
                }
                _ => played.input(random, &corpus),
            }
        }
        played.drain();
        ended += u64::from(played.over);
    });
    if std::env::var_os("COWBOYCTL_HOSTILE_CASE").is_none() {
        let reached = [established, results, commits, failures, answered, ended];
        assert!(reached.iter().all(|count| *count > 10), "little is reached: {reached:?}");
    }
}

#[test]
fn a_runner_takes_no_job_that_was_not_signed() {
    let (own, peer) = (runner(), validator().public_key());
    let corpus = of_validator();
    let kinds =
        [JobAssignment::KIND, Errand::KIND, JobCancel::KIND, JobReveal::KIND, JobAggregate::KIND];
    let openings = of_kinds(&corpus, &kinds);
    let result = |job_id| {
        let body = Body::new(b"done".to_vec()).expect("it is short");
        JobResult::signed(CHAIN, &own, job_id, body)
    };
    let done = JOBS.map(result);
    let commit = |job_id| {
        let commitment = result(job_id).commitment();
        JobCommit::signed(CHAIN, &own, job_id, Height::new(40), commitment)
    };
    let committed = JOBS.map(commit);
    let errands = JOBS.map(|label| errand(label).errand_id);
    let is_known = |id: &Hash| JOBS.contains(id) || errands.contains(id);
    let fail = |job_id| JobFailure::signed(CHAIN, &own, job_id, Reason::truncated("exited with 3"));
    let failed = JOBS.map(fail);
    let (mut established, mut assigned, mut ended) = (0u64, 0u64, 0u64);
    let (mut revealed, mut aggregated) = (0u64, 0u64);
    play(|random| {
        let config = RunnerConfig {
            chain_id: CHAIN,
            key: own.clone(),
            validator: peer.clone(),
            certified: peer.clone(),
            heartbeats: HEARTBEATS,
            nonce: RUNNERS_NONCE,
            head: Height::new(1),
        };
        let mut played = Played::new(Runner::new(config, 1_000));
        let mut is_established = false;
        played.drain();
        if !random.one_in(4) {
            // Hello, ack, the first pong.
            corpus[..3]
                .iter()
                .for_each(|frame| played.session.handle_data(StreamId::CONTROL, frame));
        }
        for _ in 0..60 {
            for event in played.drain() {
                match event {
                    RunnerEvent::Established => {
                        assert!(!is_established, "only once");
                        is_established = true;
                        established += 1;
                    }
                    RunnerEvent::Assigned { stream, assignment } => {
                        // An assignment may overtake the pong that completes the handshake.
                        assert!(
                            assignment.verify(CHAIN, &peer, &own.public_key()),
                            "{assignment:?}"
                        );
                        assigned += 1;
                        let status = match random.below(5) {
                            0 => AckStatus::Duplicate,
                            // Waits for the same assignment from other validators, or for a proof.
                            4 => continue,
                            1 => AckStatus::Reject(*random.pick(RejectReason::ALL)),
                            _ => AckStatus::Accepted,
                        };
                        played.session.answer(stream, status);
                    }
                    RunnerEvent::Sent { stream, errand } => {
                        assert!(errand.verify(CHAIN, &own.public_key()), "{errand:?}");
                        played.session.answer(stream, AckStatus::Accepted);
                    }
                    RunnerEvent::Proved { job_id, .. } => {
                        assert!(is_known(&job_id));
                        played.session.answer_waiting(&job_id, AckStatus::Duplicate);
                    }
                    // The driver checks what the proof shows and who signed it.
                    RunnerEvent::EndProved { .. } => {}
                    RunnerEvent::RevealWanted { stream, job_id } => {
                        assert!(JOBS.contains(&job_id));
                        revealed += 1;
                        let known = !random.one_in(4);
                        let result = done.iter().find(|result| result.job_id == job_id);
                        played.session.reveal(stream, result.filter(|_| known));
                    }
                    RunnerEvent::AggregateWanted { stream, aggregate } => {
                        assert!(aggregate.verify(CHAIN, &peer));
                        assert_eq!(aggregate.reveals, reveals(aggregate.job_id));
                        aggregated += 1;
                        played.session.aggregate(stream, !random.one_in(4));
                    }
                    RunnerEvent::Told { .. } => assert!(is_established),
                    RunnerEvent::Cancelled { job_id, .. }
                    | RunnerEvent::Released { job_id }
                    | RunnerEvent::Delivered { job_id }
                    | RunnerEvent::Undelivered { job_id } => assert!(is_known(&job_id)),
                }
            }
            match random.below(14) {
                0 => drop(played.session.deliver(random.pick(&done))),
                5 => drop(played.session.commit(random.pick(&committed))),
                6 => drop(played.session.fail(random.pick(&failed))),
                1 => {
                    let percent = Percent::new(random.below(101) as u16).expect("at most 100");
                    played.session.progress(*random.pick(&JOBS), percent, None);
                }
                2 => played.session.backpressure(&BackpressureSignal {
                    active_jobs: random.below(4) as u32,
                    max_concurrent: 4,
                    accepting_new: random.one_in(2),
                    reason: None,
                }),
                3 => played.session.capabilities(CapabilityChange::default()),
                4 => played.offer(random, &openings),
                _ => played.input(random, &corpus),
            }
        }
        played.drain();
        ended += u64::from(played.over);
    });
    if std::env::var_os("COWBOYCTL_HOSTILE_CASE").is_none() {
        let reached = [established, assigned, revealed, aggregated, ended];
        assert!(reached.iter().all(|count| *count > 10), "little is reached: {reached:?}");
    }
}

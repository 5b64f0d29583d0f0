//! A runner's end of its connection to a validator.

use super::{
    End, HANDSHAKE_TIMEOUT_MS, Session, StreamId, check_ack, check_party,
    heartbeat::Heartbeats,
    signed,
    streams::{JobStream, Streams},
};
use crate::{
    primitives::{Hash, Height, PublicKey, SecretKey},
    wire::{
        AckStatus, BackpressureSignal, Body, CancelReason, CapabilityChange, CapabilityDelta,
        Control, Errand, Goodbye, GoodbyeReason, Hello, HelloAck, JobAck, JobAggregate,
        JobAggregated, JobAssignment, JobCancel, JobCommit, JobFailure, JobFrame, JobIds,
        JobProgress, JobProof, JobResult, Message, OpenJobs, Percent, RawFrame, Role, Text,
    },
};

/// The parameters of a connection.
#[derive(Debug, Clone)]
pub struct RunnerConfig {
    /// The chain id that signatures cover.
    pub chain_id: u64,
    pub key: SecretKey,
    pub validator: PublicKey,
    /// The key that the peer's certificate is bound to.
    pub certified: PublicKey,
    pub heartbeats: Heartbeats,
    /// The challenge to the validator: fresh randomness.
    pub nonce: [u8; 32],
    /// The newest height the runner knows.
    pub head: Height,
}

/// What the driver's user is told, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerEvent {
    /// The validator has proved its identity and admitted the runner: the connection counts, and
    /// results can be delivered on it.
    Established,
    /// The validator announced a higher head than before.
    Told { head: Height },
    /// A job, signed by the validator: answer with [`Runner::answer`], or later with
    /// [`Runner::answer_waiting`].
    Assigned { stream: StreamId, assignment: JobAssignment },
    /// An errand, signed by its agent: answer with [`Runner::answer`].
    Sent { stream: StreamId, errand: Errand },
    /// The validator offers a proof that the chain assigns a job which has not been answered. The
    /// proof is unchecked.
    Proved { stream: StreamId, job_id: Hash, proof: Body },
    /// The validator offers a proof that the chain no longer assigns a job to this runner. The
    /// proof is unchecked.
    EndProved { job_id: Hash, proof: Body },
    /// The validator says that the job is no longer this runner's.
    Cancelled {
        job_id: Hash,
        /// The last block of the attempt: this attempt and earlier ones are cancelled.
        deadline: Height,
        reason: CancelReason,
    },
    /// The stream that the job was accepted on closed before its result was sent: the result goes
    /// to another validator.
    Released { job_id: Hash },
    /// The validator has taken the result, the commitment or the failure report.
    Delivered { job_id: Hash },
    /// A result, commitment or failure report was sent, but the stream broke before the validator
    /// took it.
    Undelivered { job_id: Hash },
    /// The validator asks for the result of a committee's job: answer with [`Runner::reveal`]
    /// before any other input.
    RevealWanted { stream: StreamId, job_id: Hash },
    /// The validator asks for this runner's signature over all results of a committee. Each result
    /// is signed by its runner. Answer with [`Runner::aggregate`] before any other input.
    AggregateWanted { stream: StreamId, aggregate: JobAggregate },
}

/// What a driver does next.
pub type RunnerOutput = super::Output<RunnerEvent>;

/// A runner's end of one connection. [`super`] describes how to drive it and the protocol.
#[derive(Debug)]
pub struct Runner {
    config: RunnerConfig,
    state: RunnerState,
    /// End of the time for the handshake, in ms.
    deadline: u64,
    /// The newest height known from any source.
    head: Height,
    /// The newest height that this validator announced.
    told: Height,
    streams: Streams<RunnerPhase, RunnerEvent>,
}

#[derive(Debug)]
enum RunnerState {
    /// The validator's `Hello` is due.
    Greeted,
    /// The validator's `HelloAck` is due.
    Challenged { challenge: [u8; 32] },
    /// Both have proved their identity; the validator's first pong is due.
    Proven(Heartbeat),
    /// The validator has confirmed it with a pong.
    Established(Heartbeat),
    /// No input has any effect.
    Closed,
}

/// The last ping. A height is pinged at most once, and the nonce always increases.
#[derive(Debug, Clone, Copy)]
struct Heartbeat {
    height: Height,
    nonce: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum RunnerPhase {
    /// The validator opened it: an assignment or a question is due.
    Opened,
    /// The driver's answer is due.
    Assigned {
        job_id: Hash,
        deadline: Height,
    },
    Accepted {
        job_id: Hash,
    },
    /// The result, the commitment or the failure report was sent; the end of the validator's half
    /// confirms that it arrived.
    Delivering {
        job_id: Hash,
    },
    /// The validator asked for the result: the driver's answer is due.
    Revealing {
        job_id: Hash,
    },
    /// The validator asked for a signature over these results: the driver's answer is due.
    Aggregating {
        job_id: Hash,
        digest: Hash,
    },
    /// Nothing is due: further frames are dropped.
    #[default]
    Over,
}

impl Runner {
    /// A connection that the runner has just opened; `now` in ms. The first output opens the
    /// control stream.
    pub fn new(config: RunnerConfig, now: u64) -> Self {
        let hello = Hello {
            version: config.heartbeats.version(),
            party_pubkey: config.key.public_key(),
            party_role: Role::Runner,
            block_height: config.head,
            challenge_nonce: config.nonce,
        };
        let mut streams = Streams::new(StreamId::FIRST_OF_RUNNER, StreamId::FIRST_OF_VALIDATOR);
        let (stream, bytes) = (StreamId::CONTROL, hello.to_frame());
        streams.outputs.push_back(RunnerOutput::Open { stream, bytes });
        Self {
            head: config.head,
            told: Height::GENESIS,
            config,
            state: RunnerState::Greeted,
            deadline: now.saturating_add(HANDSHAKE_TIMEOUT_MS),
            streams,
        }
    }

    pub const fn is_established(&self) -> bool {
        matches!(self.state, RunnerState::Established(_))
    }

    /// The newest height that the validator announced; a dishonest one may announce any.
    pub const fn told(&self) -> Height {
        self.told
    }

    /// Answers every waiting assignment of a job, for all attempts.
    pub fn answer_waiting(&mut self, job_id: &Hash, status: AckStatus) {
        let waits = |stream: &JobStream<RunnerPhase>| match stream.phase {
            RunnerPhase::Assigned { job_id: id, .. } => id == *job_id,
            _ => false,
        };
        let waiting = self.streams.jobs.iter().filter(|(_, stream)| waits(stream));
        let waiting: Vec<_> = waiting.map(|(id, _)| *id).collect();
        for stream in waiting {
            self.answer(stream, status);
        }
    }

    pub fn answer(&mut self, stream: StreamId, status: AckStatus) {
        let Some(JobStream { phase, .. }) = self.streams.jobs.get_mut(&stream) else { return };
        let RunnerPhase::Assigned { job_id, deadline } = *phase else { return };
        *phase = RunnerPhase::Accepted { job_id };
        let (chain_id, key) = (self.config.chain_id, &self.config.key);
        let bytes = JobAck::signed(chain_id, key, (job_id, deadline), status).to_frame();
        self.streams.send(stream, bytes);
        if status != AckStatus::Accepted {
            self.streams.finish(stream);
        }
    }

    /// Reports the progress of an accepted job. Nothing is sent if the stream it was accepted on is
    /// gone.
    pub fn progress(&mut self, job_id: Hash, fraction: Percent, detail: Option<Text>) {
        if let Some(stream) = self.accepted_on(&job_id) {
            let bytes = JobProgress { job_id, fraction, detail }.to_frame();
            self.streams.send(stream, bytes);
        }
    }

    /// Sends a result: on the stream on which the job was accepted, else on a new one. The outcome
    /// is [`RunnerEvent::Delivered`] or [`RunnerEvent::Undelivered`]. Returns false if the
    /// connection is not established or the maximum number of streams is open; try another
    /// connection.
    #[must_use]
    pub fn deliver(&mut self, result: &JobResult) -> bool {
        self.hand_in(result.job_id, result)
    }

    /// Sends a commitment, exactly as [`Self::deliver`] sends a result.
    #[must_use]
    pub fn commit(&mut self, commit: &JobCommit) -> bool {
        self.hand_in(commit.job_id, commit)
    }

    /// Sends a failure report, exactly as [`Self::deliver`] sends a result.
    #[must_use]
    pub fn fail(&mut self, failure: &JobFailure) -> bool {
        self.hand_in(failure.job_id, failure)
    }

    fn hand_in(&mut self, job_id: Hash, frame: &impl Message) -> bool {
        let phase = RunnerPhase::Delivering { job_id };
        if let Some(stream) = self.accepted_on(&job_id) {
            self.streams.send(stream, frame.to_frame());
            self.streams.conclude(stream, phase);
            return true;
        }
        if !self.is_established() || !self.streams.has_room() {
            return false;
        }
        let stream = self.streams.open(phase, frame.to_frame());
        self.streams.conclude(stream, phase);
        true
    }

    /// Answers [`RunnerEvent::RevealWanted`] that came on `stream`; `None` if there is no result to
    /// show.
    pub fn reveal(&mut self, stream: StreamId, result: Option<&JobResult>) {
        let phase = self.streams.jobs.get(&stream).map(|stream| stream.phase);
        let Some(RunnerPhase::Revealing { job_id }) = phase else { return };
        if let Some(result) = result.filter(|result| result.job_id == job_id) {
            self.streams.send(stream, result.to_frame());
        }
        self.streams.finish(stream);
    }

    /// Answers [`RunnerEvent::AggregateWanted`] that came on `stream`: signs if `agreed`.
    pub fn aggregate(&mut self, stream: StreamId, agreed: bool) {
        let phase = self.streams.jobs.get(&stream).map(|stream| stream.phase);
        let Some(RunnerPhase::Aggregating { job_id, digest }) = phase else { return };
        if agreed {
            let (chain_id, key) = (self.config.chain_id, &self.config.key);
            let bytes = JobAggregated::signed(chain_id, key, job_id, &digest).to_frame();
            self.streams.send(stream, bytes);
        }
        self.streams.finish(stream);
    }

    /// Whether the job was accepted on a stream of this connection that is still open.
    pub fn holds(&self, job_id: &Hash) -> bool {
        self.accepted_on(job_id).is_some()
    }

    /// Tells the validator the runner's load. Nothing is sent before [`RunnerEvent::Established`].
    pub fn backpressure(&mut self, signal: &BackpressureSignal) {
        if self.is_established() {
            self.streams.send_control(signal.to_frame());
        }
    }

    /// Names the jobs that the runner has open. Nothing is sent before
    /// [`RunnerEvent::Established`].
    pub fn name_open(&mut self, job_ids: JobIds) {
        if self.is_established() {
            self.streams.send_control(OpenJobs { job_ids }.to_frame());
        }
    }

    /// Tells the validator what the runner can serve for now. Nothing is sent before
    /// [`RunnerEvent::Established`].
    pub fn capabilities(&mut self, change: CapabilityChange) {
        if self.is_established() {
            let (chain_id, key) = (self.config.chain_id, &self.config.key);
            let delta = CapabilityDelta::signed(chain_id, key, self.head, change);
            self.streams.send_control(delta.to_frame());
        }
    }

    fn end(&mut self, end: End) {
        if matches!(self.state, RunnerState::Closed) {
            return;
        }
        self.state = RunnerState::Closed;
        for stream in std::mem::take(&mut self.streams.jobs).into_values() {
            self.streams.outputs.extend(stream.phase.given_up().map(RunnerOutput::Event));
        }
        self.streams.outputs.push_back(RunnerOutput::Closed(end));
    }

    fn control_frame(&mut self, frame: &RawFrame) -> Result<(), GoodbyeReason> {
        let chain_id = self.config.chain_id;
        match (&self.state, Control::decode(frame)?) {
            (_, Control::Goodbye(Goodbye { reason })) => self.end(End::Peer(reason)),
            (RunnerState::Greeted, Control::Hello(hello)) => {
                let RunnerConfig { validator, certified, heartbeats, .. } = &self.config;
                let expected = (heartbeats.version(), Role::Validator);
                check_party((hello.version, hello.party_role), expected)?;
                if hello.party_pubkey != *validator || hello.party_pubkey != *certified {
                    return Err(GoodbyeReason::IdentityMismatch);
                }
                if hello.challenge_nonce == self.config.nonce {
                    return Err(GoodbyeReason::ReplayedNonce);
                }
                self.told = hello.block_height;
                self.state = RunnerState::Challenged { challenge: hello.challenge_nonce };
            }
            (RunnerState::Challenged { challenge }, Control::HelloAck(ack)) => {
                let RunnerConfig { validator, nonce, key, heartbeats, .. } = &self.config;
                let version = heartbeats.version();
                check_ack(&ack, chain_id, (version, Role::Validator), validator, nonce)?;
                let party = (version, Role::Runner);
                let own = HelloAck::signed(chain_id, key, party, self.head, challenge);
                self.streams.send_control(own.to_frame());
                self.head = self.head.max(self.told);
                let first = Heartbeat { height: self.head, nonce: 0 };
                self.state = RunnerState::Proven(first);
                self.send_heartbeat(first);
            }
            (RunnerState::Proven(_) | RunnerState::Established(_), Control::Pong(pong))
                if self.config.heartbeats == Heartbeats::Signed =>
            {
                self.ponged(pong.block_height, |config| {
                    pong.verify(chain_id, &config.validator, &config.key.public_key())
                })?;
            }
            (RunnerState::Proven(_) | RunnerState::Established(_), Control::KeyedPong(pong))
                if let Heartbeats::Keyed(key) = &self.config.heartbeats =>
            {
                let holds = pong.verify(chain_id, key);
                self.ponged(pong.block_height, |_| holds)?;
            }
            _ => return Err(GoodbyeReason::MalformedFrame),
        }
        Ok(())
    }

    /// The first pong establishes the connection. A later one that tells nothing new is not
    /// checked: a signature costs more than all else here.
    fn ponged(
        &mut self,
        height: Height,
        holds: impl FnOnce(&RunnerConfig) -> bool,
    ) -> Result<(), GoodbyeReason> {
        if let RunnerState::Proven(heartbeat) = self.state {
            signed(holds(&self.config))?;
            self.state = RunnerState::Established(heartbeat);
            self.streams.say(RunnerEvent::Established);
            self.tell(height);
        } else if height > self.told {
            signed(holds(&self.config))?;
            self.tell(height);
        }
        Ok(())
    }

    fn tell(&mut self, head: Height) {
        self.told = self.told.max(head);
        self.head = self.head.max(head);
        self.streams.say(RunnerEvent::Told { head: self.told });
        self.send_ping();
    }

    /// Sends a ping if the head is above the last pinged height.
    fn send_ping(&mut self) {
        let (RunnerState::Proven(last) | RunnerState::Established(last)) = &mut self.state else {
            return;
        };
        if self.head > last.height {
            *last = Heartbeat { height: self.head, nonce: last.nonce.saturating_add(1) };
            let heartbeat = *last;
            self.send_heartbeat(heartbeat);
        }
    }

    fn send_heartbeat(&mut self, Heartbeat { height, nonce }: Heartbeat) {
        let (chain_id, key) = (self.config.chain_id, &self.config.key);
        let bytes = self.config.heartbeats.ping(chain_id, key, height, nonce);
        self.streams.send_control(bytes);
    }

    fn job_frame(&mut self, id: StreamId, frame: &RawFrame) -> Result<(), GoodbyeReason> {
        let Some(stream) = self.streams.jobs.get_mut(&id) else { return Ok(()) };
        let Some(frame) = JobFrame::decode(frame)? else { return Ok(()) };
        let RunnerConfig { chain_id, key, validator, .. } = &self.config;
        match (stream.phase, frame) {
            (RunnerPhase::Opened, JobFrame::Assignment(assignment)) => {
                signed(assignment.verify(*chain_id, validator, &key.public_key()))?;
                let JobAssignment { job_id, deadline_block, .. } = assignment;
                stream.phase = RunnerPhase::Assigned { job_id, deadline: deadline_block };
                self.streams.say(RunnerEvent::Assigned { stream: id, assignment });
            }
            (RunnerPhase::Opened, JobFrame::Errand(errand)) => {
                signed(errand.verify(*chain_id, &key.public_key()))?;
                let Errand { errand_id, deadline_block, .. } = errand;
                stream.phase =
                    RunnerPhase::Assigned { job_id: errand_id, deadline: deadline_block };
                self.streams.say(RunnerEvent::Sent { stream: id, errand });
            }
            (RunnerPhase::Assigned { job_id, .. }, JobFrame::Proof(proof))
                if proof.job_id == job_id =>
            {
                self.streams.say(RunnerEvent::Proved { stream: id, job_id, proof: proof.proof });
            }
            (RunnerPhase::Opened, JobFrame::Proof(JobProof { job_id, proof })) => {
                self.streams.say(RunnerEvent::EndProved { job_id, proof });
                self.streams.finish(id);
            }
            // The proof and the runner's answer crossed on the way.
            (
                RunnerPhase::Accepted { job_id } | RunnerPhase::Delivering { job_id },
                JobFrame::Proof(proof),
            ) if proof.job_id == job_id => {}
            (RunnerPhase::Opened, JobFrame::Reveal(asked)) => {
                signed(asked.verify(*chain_id, validator))?;
                stream.phase = RunnerPhase::Revealing { job_id: asked.job_id };
                self.streams.say(RunnerEvent::RevealWanted { stream: id, job_id: asked.job_id });
            }
            (RunnerPhase::Opened, JobFrame::Aggregate(aggregate)) => {
                let job_id = aggregate.job_id;
                signed(aggregate.verify(*chain_id, validator))?;
                let mut reveals = aggregate.reveals.as_slice().iter();
                signed(reveals.all(|reveal| reveal.verify(*chain_id, &job_id)))?;
                stream.phase =
                    RunnerPhase::Aggregating { job_id, digest: aggregate.reveals.digest() };
                self.streams.say(RunnerEvent::AggregateWanted { stream: id, aggregate });
            }
            (phase, JobFrame::Cancel(cancel)) if phase.may_be_cancelled(&cancel.job_id) => {
                signed(cancel.verify(*chain_id, validator))?;
                let JobCancel { job_id, deadline_block: deadline, reason, .. } = cancel;
                self.streams.say(RunnerEvent::Cancelled { job_id, deadline, reason });
                self.streams.finish(id);
            }
            _ => return Err(GoodbyeReason::MalformedFrame),
        }
        Ok(())
    }

    fn stream_ended(&mut self, id: StreamId, cleanly: bool) {
        if id == StreamId::CONTROL {
            return self.end(End::Lost);
        }
        let Some(phase) = self.streams.ended(id) else { return };
        let event = match phase {
            RunnerPhase::Delivering { job_id } if cleanly => {
                Some(RunnerEvent::Delivered { job_id })
            }
            phase => phase.given_up(),
        };
        self.streams.outputs.extend(event.map(RunnerOutput::Event));
        self.streams.finish(id);
    }

    fn accepted_on(&self, job_id: &Hash) -> Option<StreamId> {
        let accepted = |(_, stream): &(&StreamId, &JobStream<RunnerPhase>)| {
            stream.phase == RunnerPhase::Accepted { job_id: *job_id }
        };
        self.streams.jobs.iter().find(accepted).map(|(id, _)| *id)
    }
}

impl Session for Runner {
    type Event = RunnerEvent;

    fn poll_output(&mut self) -> Option<RunnerOutput> {
        self.streams.outputs.pop_front()
    }

    fn next_timeout(&self) -> Option<u64> {
        match self.state {
            RunnerState::Established(_) | RunnerState::Closed => None,
            _ => Some(self.deadline),
        }
    }

    fn handle_opened(&mut self) -> Option<StreamId> {
        match self.state {
            RunnerState::Closed => return None,
            // The validator opens streams only after it has proved itself.
            RunnerState::Greeted | RunnerState::Challenged { .. } => {
                self.close(GoodbyeReason::MalformedFrame);
                return None;
            }
            RunnerState::Proven(_) | RunnerState::Established(_) => {}
        }
        let stream = self.streams.accept(RunnerPhase::Opened);
        if stream.is_none() {
            self.close(GoodbyeReason::RateLimited);
        }
        stream
    }

    fn handle_data(&mut self, stream: StreamId, mut bytes: &[u8]) {
        while !matches!(self.state, RunnerState::Closed) {
            let Some(frame) = self.streams.read(stream, &mut bytes) else { return };
            let handled = match frame {
                Ok(frame) if stream == StreamId::CONTROL => self.control_frame(&frame),
                Ok(frame) => self.job_frame(stream, &frame),
                Err(error) => Err(error.reason()),
            };
            if let Err(reason) = handled {
                self.close(reason);
            }
        }
    }

    fn handle_finished(&mut self, stream: StreamId) {
        self.stream_ended(stream, true);
    }

    fn handle_reset(&mut self, stream: StreamId) {
        self.stream_ended(stream, false);
    }

    fn handle_connection_lost(&mut self) {
        self.end(End::Lost);
    }

    fn handle_head(&mut self, head: Height) {
        self.head = self.head.max(head);
        self.send_ping();
    }

    fn handle_timeout(&mut self, now: u64) {
        if self.next_timeout().is_some_and(|deadline| deadline <= now) {
            self.end(End::HandshakeTimeout);
        }
    }

    fn close(&mut self, reason: GoodbyeReason) {
        if matches!(self.state, RunnerState::Closed) {
            return;
        }
        self.streams.send_control(Goodbye { reason }.to_frame());
        self.streams.outputs.push_back(RunnerOutput::Finish { stream: StreamId::CONTROL });
        self.end(End::Local(reason));
    }
}

impl RunnerPhase {
    fn may_be_cancelled(self, job_id: &Hash) -> bool {
        match self {
            Self::Opened => true,
            Self::Assigned { job_id: id, .. }
            | Self::Accepted { job_id: id }
            | Self::Delivering { job_id: id } => id == *job_id,
            Self::Revealing { .. } | Self::Aggregating { .. } | Self::Over => false,
        }
    }

    /// The event to report if the stream breaks now.
    const fn given_up(self) -> Option<RunnerEvent> {
        match self {
            Self::Delivering { job_id } => Some(RunnerEvent::Undelivered { job_id }),
            Self::Accepted { job_id } => Some(RunnerEvent::Released { job_id }),
            Self::Opened
            | Self::Assigned { .. }
            | Self::Revealing { .. }
            | Self::Aggregating { .. }
            | Self::Over => None,
        }
    }
}

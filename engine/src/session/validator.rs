//! A validator's end of a runner's connection.

mod dispatch;

pub use dispatch::AssignError;

use super::{
    DispatchOutcome, End, HANDSHAKE_TIMEOUT_MS, Session, StreamId, check_ack, check_party,
    heartbeat::Heartbeats,
    signed,
    streams::{JobStream, Streams},
};
use crate::{
    presence::Connectivity,
    primitives::{Hash, Height, PublicKey, SecretKey},
    wire::{
        AckStatus, BackpressureSignal, CapabilityDelta, Control, Goodbye, GoodbyeReason, Hello,
        HelloAck, JobAck, JobAggregated, JobCommit, JobFailure, JobFrame, JobIds, JobProgress,
        JobResult, Message as _, RawFrame, Role,
    },
};

/// The parameters of a connection.
#[derive(Debug, Clone)]
pub struct ValidatorConfig {
    /// The chain id that signatures cover.
    pub chain_id: u64,
    /// The validator's runner-facing key.
    pub key: SecretKey,
    /// The key that the runner's certificate is bound to.
    pub certified: PublicKey,
    pub heartbeats: Heartbeats,
    /// The challenge to the runner: fresh randomness.
    pub nonce: [u8; 32],
    pub head: Height,
    pub connectivity: Connectivity,
}

/// What the driver's user is told, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValidatorEvent {
    /// Decide whether this runner may connect: answer with [`Validator::handle_admission`] before
    /// any other input.
    Admit {
        runner: PublicKey,
        /// Its challenge nonce, which must be new.
        nonce: [u8; 32],
    },
    Established,
    Pinged {
        /// The newest height that the runner knows.
        height: Height,
    },
    Backpressure(BackpressureSignal),
    /// The runner changed what it can serve; the signature is valid.
    Capabilities(CapabilityDelta),
    /// The runner has these jobs open: cancel those that the chain has ended.
    Open(JobIds),
    Accepted {
        job_id: Hash,
    },
    Progress(JobProgress),
    /// A result with a valid signature, of a job accepted here or handed over. The chain decides
    /// whether it is still wanted.
    Result(JobResult),
    /// A commitment with a valid signature, otherwise like [`ValidatorEvent::Result`].
    Committed(JobCommit),
    /// A failure report with a valid signature, otherwise like [`ValidatorEvent::Result`].
    Failed(JobFailure),
    /// The runner's answer to [`Validator::ask_reveal`], with a valid signature.
    Revealed(JobResult),
    /// The runner's answer to [`Validator::ask_aggregate`], with a valid signature over the results
    /// in the question.
    Aggregated {
        answer: JobAggregated,
        /// [`reveals_digest`](crate::wire::reveals_digest) of those results.
        digest: Hash,
    },
    /// The outcome of a dispatch; at most once per assignment.
    Outcome {
        job_id: Hash,
        outcome: DispatchOutcome,
    },
    /// The runner's signed refusal of an assignment; [`ValidatorEvent::Outcome`] follows.
    Rejected(JobAck),
}

/// What a driver does next.
pub type ValidatorOutput = super::Output<ValidatorEvent>;

/// A validator's end of one connection. [`super`] describes how to drive it and the protocol.
#[derive(Debug)]
pub struct Validator {
    config: ValidatorConfig,
    state: ValidatorState,
    /// End of the time for the handshake, in ms.
    deadline: u64,
    head: Height,
    /// The last head that was announced to the runner.
    told: Height,
    streams: Streams<ValidatorPhase, ValidatorEvent>,
}

#[derive(Debug)]
enum ValidatorState {
    /// The runner has not opened the control stream yet.
    Connected,
    /// The control stream is open, the runner's `Hello` is due.
    Opened,
    /// The driver's verdict is due.
    Admitting(Hello),
    /// The runner's `HelloAck` is due.
    Challenged(PublicKey),
    Established {
        runner: PublicKey,
        nonce: Option<u64>,
    },
    /// No input has any effect.
    Closed,
}

/// What the runner is expected to send on a job stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ValidatorPhase {
    /// The runner opened the stream to hand in a result, a commitment or a failure report.
    HandOver,
    /// An ack, within its time.
    Unanswered {
        job_id: Hash,
        deadline: Height,
        since: Height,
        /// A frame arrived that was no answer, but shows that the runner is alive.
        alive: bool,
        proved: bool,
    },
    /// Progress, and the result, commitment or failure report.
    Accepted { job_id: Hash },
    /// A result, commitment or failure report that is in flight; the dispatch has failed.
    Failed { job_id: Hash },
    /// The result that it has committed to, within the timeout of an ack.
    Revealing { job_id: Hash, since: Height },
    /// Its signature over a committee's results, within the timeout of an ack.
    Aggregating { job_id: Hash, digest: Hash, since: Height },
    /// Nothing: further frames are dropped.
    #[default]
    Over,
}

impl Validator {
    /// A connection that a runner has just opened; `now` in ms.
    pub fn new(config: ValidatorConfig, now: u64) -> Self {
        Self {
            head: config.head,
            told: Height::GENESIS,
            config,
            state: ValidatorState::Connected,
            deadline: now.saturating_add(HANDSHAKE_TIMEOUT_MS),
            streams: Streams::new(StreamId::FIRST_OF_VALIDATOR, StreamId::FIRST_OF_RUNNER),
        }
    }

    /// Replaces the chain's connection parameters, from the next head on.
    pub const fn govern(&mut self, connectivity: Connectivity) {
        self.config.connectivity = connectivity;
    }

    pub const fn is_established(&self) -> bool {
        matches!(self.state, ValidatorState::Established { .. })
    }

    /// The driver's verdict on [`ValidatorEvent::Admit`].
    pub fn handle_admission(&mut self, verdict: Result<(), GoodbyeReason>) {
        let ValidatorState::Admitting(hello) = &self.state else { return };
        let checked = verdict.and_then(|()| {
            if hello.party_pubkey != self.config.certified {
                return Err(GoodbyeReason::IdentityMismatch);
            }
            if hello.challenge_nonce == self.config.nonce {
                return Err(GoodbyeReason::ReplayedNonce);
            }
            Ok(())
        });
        if let Err(reason) = checked {
            return self.close(reason);
        }
        let (chain_id, key) = (self.config.chain_id, &self.config.key);
        let version = self.config.heartbeats.version();
        let own = Hello {
            version,
            party_pubkey: key.public_key(),
            party_role: Role::Validator,
            block_height: self.head,
            challenge_nonce: self.config.nonce,
        };
        let party = (version, Role::Validator);
        let ack = HelloAck::signed(chain_id, key, party, self.head, &hello.challenge_nonce);
        let bytes = [own.to_frame(), ack.to_frame()].concat();
        self.state = ValidatorState::Challenged(hello.party_pubkey.clone());
        self.streams.send(StreamId::CONTROL, bytes);
    }

    fn end(&mut self, end: End) {
        if matches!(self.state, ValidatorState::Closed) {
            return;
        }
        self.state = ValidatorState::Closed;
        self.streams.jobs.clear();
        self.streams.outputs.push_back(ValidatorOutput::Closed(end));
    }

    fn control_frame(&mut self, frame: &RawFrame) -> Result<(), GoodbyeReason> {
        match (&mut self.state, Control::decode(frame)?) {
            (_, Control::Goodbye(Goodbye { reason })) => self.end(End::Peer(reason)),
            (ValidatorState::Opened, Control::Hello(hello)) => {
                let expected = (self.config.heartbeats.version(), Role::Runner);
                check_party((hello.version, hello.party_role), expected)?;
                let (runner, nonce) = (hello.party_pubkey.clone(), hello.challenge_nonce);
                self.state = ValidatorState::Admitting(hello);
                self.streams.say(ValidatorEvent::Admit { runner, nonce });
            }
            (ValidatorState::Challenged(runner), Control::HelloAck(ack)) => {
                let party = (self.config.heartbeats.version(), Role::Runner);
                check_ack(&ack, self.config.chain_id, party, runner, &self.config.nonce)?;
                self.state = ValidatorState::Established { runner: runner.clone(), nonce: None };
                self.streams.say(ValidatorEvent::Established);
                self.send_pong();
            }
            (ValidatorState::Established { runner, nonce }, Control::Ping(ping))
                if self.config.heartbeats == Heartbeats::Signed =>
            {
                increased(nonce, ping.nonce)?;
                signed(ping.verify(self.config.chain_id, runner))?;
                self.streams.say(ValidatorEvent::Pinged { height: ping.block_height });
            }
            (ValidatorState::Established { nonce, .. }, Control::KeyedPing(ping))
                if let Heartbeats::Keyed(key) = &self.config.heartbeats =>
            {
                increased(nonce, ping.nonce)?;
                signed(ping.verify(self.config.chain_id, key))?;
                self.streams.say(ValidatorEvent::Pinged { height: ping.block_height });
            }
            (ValidatorState::Established { .. }, Control::Backpressure(signal)) => {
                self.streams.say(ValidatorEvent::Backpressure(signal));
            }
            (ValidatorState::Established { .. }, Control::OpenJobs(open)) => {
                self.streams.say(ValidatorEvent::Open(open.job_ids));
            }
            (ValidatorState::Established { runner, .. }, Control::Capabilities(delta)) => {
                signed(delta.verify(self.config.chain_id, runner))?;
                self.streams.say(ValidatorEvent::Capabilities(delta));
            }
            _ => return Err(GoodbyeReason::MalformedFrame),
        }
        Ok(())
    }

    fn job_frame(&mut self, id: StreamId, frame: &RawFrame) -> Result<(), GoodbyeReason> {
        let (ValidatorState::Established { runner, .. }, Some(stream)) =
            (&self.state, self.streams.jobs.get_mut(&id))
        else {
            return Ok(());
        };
        let chain_id = self.config.chain_id;
        let Some(frame) = JobFrame::decode(frame)? else {
            if let ValidatorPhase::Unanswered { alive, .. } = &mut stream.phase {
                *alive = true;
            }
            return Ok(());
        };
        let job_of_stream = stream.phase.job_id();
        match (stream.phase, frame) {
            (ValidatorPhase::HandOver, frame) => {
                let event = handed_in(frame, chain_id, runner)?;
                self.streams.say(event);
                self.streams.finish(id);
            }
            (_, frame) if job_of_stream != Some(frame.job_id()) => {
                return Err(GoodbyeReason::MalformedFrame);
            }
            (ValidatorPhase::Unanswered { job_id, deadline, .. }, JobFrame::Ack(ack)) => {
                if ack.deadline_block != deadline {
                    return Err(GoodbyeReason::MalformedFrame);
                }
                signed(ack.verify(chain_id, runner))?;
                let outcome = match ack.status {
                    AckStatus::Accepted => {
                        stream.phase = ValidatorPhase::Accepted { job_id };
                        self.streams.say(ValidatorEvent::Accepted { job_id });
                        return Ok(());
                    }
                    AckStatus::Duplicate => DispatchOutcome::Duplicate,
                    AckStatus::Reject(reason) => {
                        self.streams.say(ValidatorEvent::Rejected(ack));
                        DispatchOutcome::SoftFailure(Some(reason))
                    }
                };
                self.streams.say(ValidatorEvent::Outcome { job_id, outcome });
                self.streams.finish(id);
            }
            (
                ValidatorPhase::Unanswered { job_id, .. },
                JobFrame::Progress(_)
                | JobFrame::Result(_)
                | JobFrame::Commit(_)
                | JobFrame::Failure(_),
            ) => {
                let outcome = DispatchOutcome::SoftFailure(None);
                self.streams.say(ValidatorEvent::Outcome { job_id, outcome });
                self.streams.finish(id);
            }
            (ValidatorPhase::Accepted { .. }, JobFrame::Progress(progress)) => {
                self.streams.say(ValidatorEvent::Progress(progress));
            }
            (ValidatorPhase::Accepted { job_id }, frame) => {
                let event = handed_in(frame, chain_id, runner)?;
                self.streams.say(event);
                self.streams
                    .say(ValidatorEvent::Outcome { job_id, outcome: DispatchOutcome::Success });
                self.streams.finish(id);
            }
            (ValidatorPhase::Failed { .. }, JobFrame::Ack(_) | JobFrame::Progress(_)) => {}
            (ValidatorPhase::Failed { .. }, frame) => {
                let event = handed_in(frame, chain_id, runner)?;
                self.streams.say(event);
                self.streams.finish(id);
            }
            (ValidatorPhase::Revealing { .. }, JobFrame::Result(result)) => {
                signed(result.verify(chain_id, runner))?;
                self.streams.say(ValidatorEvent::Revealed(result));
                self.streams.finish(id);
            }
            (ValidatorPhase::Aggregating { digest, .. }, JobFrame::Aggregated(answer)) => {
                signed(answer.verify(chain_id, runner, &digest))?;
                self.streams.say(ValidatorEvent::Aggregated { answer, digest });
                self.streams.finish(id);
            }
            _ => return Err(GoodbyeReason::MalformedFrame),
        }
        Ok(())
    }

    fn send_pong(&mut self) {
        let ValidatorState::Established { runner, .. } = &self.state else { return };
        let (chain_id, key) = (self.config.chain_id, &self.config.key);
        let bytes = self.config.heartbeats.pong(chain_id, key, self.head, runner);
        self.told = self.head;
        self.streams.send(StreamId::CONTROL, bytes);
    }

    /// Gives up on unanswered frames that are late. Only a late assignment has consequences.
    fn expire(&mut self) {
        let unanswered = |(id, stream): (&StreamId, &JobStream<ValidatorPhase>)| match stream.phase
        {
            ValidatorPhase::Revealing { since, .. } | ValidatorPhase::Aggregating { since, .. }
                if self.is_late(since) =>
            {
                Some(*id)
            }
            _ => None,
        };
        let questions: Vec<_> = self.streams.jobs.iter().filter_map(unanswered).collect();
        for stream in questions {
            self.streams.finish(stream);
        }
        self.expire_dispatches();
    }

    fn is_late(&self, since: Height) -> bool {
        self.head.since(since) > self.config.connectivity.ack_timeout_blocks
    }

    fn expire_dispatches(&mut self) {
        let due: Vec<_> = self
            .streams
            .jobs
            .iter()
            .filter_map(|(id, stream)| match stream.phase {
                ValidatorPhase::Unanswered { job_id, since, alive, .. } if self.is_late(since) => {
                    Some((*id, job_id, alive))
                }
                _ => None,
            })
            .collect();
        for (stream, job_id, alive) in due {
            let outcome = if alive {
                DispatchOutcome::SoftFailure(None)
            } else {
                DispatchOutcome::HardFailure
            };
            self.streams.say(ValidatorEvent::Outcome { job_id, outcome });
            self.streams.conclude(stream, ValidatorPhase::Failed { job_id });
        }
    }

    fn stream_ended(&mut self, id: StreamId) {
        if id == StreamId::CONTROL {
            return self.end(End::Lost);
        }
        let Some(phase) = self.streams.ended(id) else { return };
        match phase {
            // No answer can come, but it is a hard failure only after the timeout.
            ValidatorPhase::Unanswered { alive: false, .. } => {}
            ValidatorPhase::Unanswered { job_id, alive: true, .. } => {
                let outcome = DispatchOutcome::SoftFailure(None);
                self.streams.say(ValidatorEvent::Outcome { job_id, outcome });
                self.streams.finish(id);
            }
            ValidatorPhase::HandOver
            | ValidatorPhase::Accepted { .. }
            | ValidatorPhase::Failed { .. }
            | ValidatorPhase::Revealing { .. }
            | ValidatorPhase::Aggregating { .. }
            | ValidatorPhase::Over => {
                self.streams.finish(id);
            }
        }
    }
}

impl Session for Validator {
    type Event = ValidatorEvent;

    fn poll_output(&mut self) -> Option<ValidatorOutput> {
        self.streams.outputs.pop_front()
    }

    fn next_timeout(&self) -> Option<u64> {
        match self.state {
            ValidatorState::Established { .. } | ValidatorState::Closed => None,
            _ => Some(self.deadline),
        }
    }

    fn handle_opened(&mut self) -> Option<StreamId> {
        match self.state {
            ValidatorState::Closed => None,
            ValidatorState::Connected => {
                self.state = ValidatorState::Opened;
                Some(StreamId::CONTROL)
            }
            ValidatorState::Established { .. } => {
                let stream = self.streams.accept(ValidatorPhase::HandOver);
                if stream.is_none() {
                    self.close(GoodbyeReason::RateLimited);
                }
                stream
            }
            ValidatorState::Opened
            | ValidatorState::Admitting(_)
            | ValidatorState::Challenged(_) => {
                self.close(GoodbyeReason::MalformedFrame);
                None
            }
        }
    }

    fn handle_data(&mut self, stream: StreamId, mut bytes: &[u8]) {
        while !matches!(self.state, ValidatorState::Closed) {
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
        self.stream_ended(stream);
    }

    fn handle_reset(&mut self, stream: StreamId) {
        self.stream_ended(stream);
    }

    fn handle_connection_lost(&mut self) {
        self.end(End::Lost);
    }

    fn handle_head(&mut self, head: Height) {
        if head <= self.head {
            return;
        }
        self.head = head;
        if self.is_established() {
            // The heights are the same on all connections: a runner answers the first that
            // announces one.
            let beat = |at: Height| at.get() / self.config.connectivity.heartbeat_blocks.max(1);
            if beat(head) > beat(self.told) {
                self.send_pong();
            }
            self.expire();
        }
    }

    fn handle_timeout(&mut self, now: u64) {
        if self.next_timeout().is_some_and(|deadline| deadline <= now) {
            self.end(End::HandshakeTimeout);
        }
    }

    fn close(&mut self, reason: GoodbyeReason) {
        match self.state {
            ValidatorState::Closed => return,
            // There is no stream for a goodbye.
            ValidatorState::Connected => {}
            _ => {
                let bytes = Goodbye { reason }.to_frame();
                let stream = StreamId::CONTROL;
                self.streams.send(stream, bytes);
                self.streams.outputs.push_back(ValidatorOutput::Finish { stream });
            }
        }
        self.end(End::Local(reason));
    }
}

/// Checks that the nonce of a ping is higher than the last, and remembers it.
fn increased(last: &mut Option<u64>, nonce: u64) -> Result<(), GoodbyeReason> {
    if last.is_some_and(|last| nonce <= last) {
        return Err(GoodbyeReason::ReplayedNonce);
    }
    *last = Some(nonce);
    Ok(())
}

/// The event for a result, commitment or failure report after its signature was checked.
fn handed_in(
    frame: JobFrame,
    chain_id: u64,
    runner: &PublicKey,
) -> Result<ValidatorEvent, GoodbyeReason> {
    Ok(match frame {
        JobFrame::Result(result) => {
            signed(result.verify(chain_id, runner))?;
            ValidatorEvent::Result(result)
        }
        JobFrame::Commit(commit) => {
            signed(commit.verify(chain_id, runner))?;
            ValidatorEvent::Committed(commit)
        }
        JobFrame::Failure(failure) => {
            signed(failure.verify(chain_id, runner))?;
            ValidatorEvent::Failed(failure)
        }
        _ => return Err(GoodbyeReason::MalformedFrame),
    })
}

impl ValidatorPhase {
    const fn dispatched(job_id: Hash, deadline: Height, since: Height) -> Self {
        Self::Unanswered { job_id, deadline, since, alive: false, proved: false }
    }

    const fn job_id(&self) -> Option<Hash> {
        match self {
            Self::Unanswered { job_id, .. }
            | Self::Accepted { job_id }
            | Self::Failed { job_id }
            | Self::Revealing { job_id, .. }
            | Self::Aggregating { job_id, .. } => Some(*job_id),
            Self::HandOver | Self::Over => None,
        }
    }

    const fn is_dispatch(&self) -> bool {
        matches!(self, Self::Unanswered { .. } | Self::Accepted { .. } | Self::Failed { .. })
    }

    /// Whether both are dispatches of one job, or the same question about one job.
    fn is_about_the_same(&self, other: &Self) -> bool {
        let same_kind = match (self, other) {
            (Self::Revealing { .. }, Self::Revealing { .. })
            | (Self::Aggregating { .. }, Self::Aggregating { .. }) => true,
            _ => self.is_dispatch() && other.is_dispatch(),
        };
        same_kind && self.job_id() == other.job_id()
    }
}

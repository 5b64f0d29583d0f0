//! One job: the phases it goes through, its attempts, and how they end.
//!
//! What a job is in is a [`Phase`]; a lease that can still be used stands in it, so that there is
//! one at most, and none in a phase that has none. Every change goes through a function here that
//! takes the phase apart.

use super::{
    Concurrency, Config, JobId, JobState, LeaseKey, LeaseState, Member, Refusal, RunId, RunIf,
    RunnerId, Stale, Why,
    config::{MAX_BACKOFF_SECONDS, ms},
};
use crate::{
    primitives::{
        Hash,
        codec::{Decode, DecodeError, Encode, Reader, Writer},
    },
    record,
};
use std::{collections::BTreeSet, mem};

/// Upon what a job is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOn {
    /// Its runner is gone.
    pub lease_lost: bool,
    /// Its runner says that it failed.
    pub failure: bool,
    /// It took too long.
    pub timeout: bool,
}
record!(RetryOn { lease_lost, failure, timeout });

impl Default for RetryOn {
    fn default() -> Self {
        Self { lease_lost: true, failure: false, timeout: false }
    }
}

/// What is the same for all of a job's attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What a runner must be capable of.
    pub requires: Vec<String>,
    /// How long an attempt may take from its ack.
    pub max_runtime_seconds: u64,
    /// How often it is granted at most.
    pub max_attempts: u32,
    /// Upon what it is tried again.
    pub retry_on: RetryOn,
    /// The pause before the second attempt in seconds, which doubles before each further one and is
    /// [`MAX_BACKOFF_SECONDS`] at most; absent: none.
    pub backoff_seconds: Option<u64>,
    /// Upon what ends of its needs it runs; absent: [`RunIf::Success`].
    pub run_if: Option<RunIf>,
    /// Where it is true, jobs that need this one run although it fails or times out.
    pub allow_failure: Option<bool>,
    /// The group of which one job at a time is worked on; absent: none.
    pub concurrency: Option<Concurrency>,
}
record!(Rules {
    requires,
    max_runtime_seconds,
    max_attempts,
    retry_on,
    backoff_seconds,
    run_if,
    allow_failure,
    concurrency,
});

/// A job as it is handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// Its id, which no other has.
    pub id: JobId,
    /// Its rules.
    pub rules: Rules,
    /// Jobs of the same run that must end before it is queued, as its condition says.
    pub needs: BTreeSet<JobId>,
}

/// A grant, and what became of it. Times are the server's, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Who got it.
    pub runner: RunnerId,
    /// Its lease's key.
    pub lease: LeaseKey,
    /// When.
    pub granted_at: u64,
    /// When its holder acked it.
    pub acked_at: Option<u64>,
    /// When its last heartbeat came.
    pub heartbeat_at: Option<u64>,
}
record!(Attempt { runner, lease, granted_at, acked_at, heartbeat_at });

/// An attempt whose lease is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Past {
    attempt: Attempt,
    state: LeaseState,
    ended_at: u64,
    /// What the message said that ended it.
    said: Option<Hash>,
}
record!(Past { attempt, state, ended_at, said });

/// How a job ended, by its holder's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It did what it should.
    Succeeded,
    /// It did not.
    Failed,
    /// The holder stopped it when its time was over.
    TimedOut,
}

/// What the holder of a lease is told upon a heartbeat. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// How long the lease holds from now on.
    pub ttl: u64,
    /// How long the holder has to stop, if it is to.
    pub cancel: Option<u64>,
    /// How long the holder may still upload and complete, where the job's time is over.
    pub grace: Option<u64>,
}

/// How far the holder of a lease is. After `until` there is the configuration's grace, in which
/// the job's end may still be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It must ack by then.
    Granted { ack_by: u64 },
    /// It has acked, and must stop by then.
    Starting { until: u64 },
    /// It has sent a heartbeat, and must stop by then.
    Running { until: u64 },
    /// It must say by then that it stopped.
    Canceling { deadline: u64, why: Why },
}

/// A lease that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holding {
    attempt: Attempt,
    /// It is good while this has not come.
    expires: u64,
    stage: Stage,
}

/// What a job is in.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Jobs that it needs have not ended yet; the others went like that.
    Waiting { needs: BTreeSet<JobId>, others: Went },
    /// It joins the queue then, to be tried again.
    Pausing { until: u64 },
    /// It stands in the queue.
    Queued { position: u64 },
    /// Somebody has its lease.
    Held(Holding),
    /// It is over.
    Ended { state: JobState, why: Why, at: u64 },
}

/// What became of jobs that another one needs: of several the last of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Went {
    /// As it should.
    Well,
    /// It was canceled, or skipped although none failed.
    Unfinished,
    /// It failed, or was skipped because another one did.
    Badly,
}

/// What follows for the board from a change of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Nothing.
    Stays,
    /// It is to be queued, at the back.
    Requeue,
    /// It has ended.
    Ends,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    id: JobId,
    run: RunId,
    rules: Rules,
    phase: Phase,
    past: Vec<Past>,
    /// How often it has become terminal: once at most.
    finalized: u32,
    /// Its ticket in the group of its own; absent before it joins.
    turn: Option<u64>,
    /// The group of its run, and the run's ticket.
    run_turn: Option<RunTurn>,
}

/// A run's ticket in its concurrency group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunTurn {
    pub group: String,
    pub ticket: u64,
}
record!(RunTurn { group, ticket });

impl Job {
    pub(super) fn new(run: RunId, job: NewJob, run_turn: Option<RunTurn>) -> Self {
        let NewJob { id, rules, needs } = job;
        let phase = Phase::Waiting { needs, others: Went::Well };
        Self { id, run, rules, phase, past: Vec::new(), finalized: 0, turn: None, run_turn }
    }

    /// Its id.
    pub const fn id(&self) -> &JobId {
        &self.id
    }

    /// The run that it belongs to.
    pub const fn run(&self) -> &RunId {
        &self.run
    }

    /// What is the same for all of its attempts.
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// What it is in.
    pub const fn state(&self) -> JobState {
        match &self.phase {
            Phase::Waiting { .. } | Phase::Pausing { .. } | Phase::Queued { .. } => {
                JobState::Queued
            }
            Phase::Held(held) => match held.stage {
                Stage::Granted { .. } => JobState::Leased,
                Stage::Starting { .. } => JobState::Starting,
                Stage::Running { .. } => JobState::Running,
                Stage::Canceling { .. } => JobState::CancelRequested,
            },
            Phase::Ended { state, .. } => *state,
        }
    }

    /// When and why it ended.
    pub const fn end(&self) -> Option<(u64, Why)> {
        match &self.phase {
            Phase::Ended { why, at, .. } => Some((*at, *why)),
            _ => None,
        }
    }

    /// The number of its last attempt, from 1; 0 before the first.
    pub fn attempt(&self) -> u32 {
        let live = u32::from(matches!(self.phase, Phase::Held(_)));
        u32::try_from(self.past.len()).unwrap_or(u32::MAX).saturating_add(live)
    }

    /// How often it has become terminal: once at most.
    pub const fn finalized(&self) -> u32 {
        self.finalized
    }

    /// Where it stands in the queue.
    pub const fn position(&self) -> Option<u64> {
        match &self.phase {
            Phase::Queued { position } => Some(*position),
            _ => None,
        }
    }

    /// The jobs that it waits for.
    pub fn needs(&self) -> impl Iterator<Item = &JobId> {
        let needs = match &self.phase {
            Phase::Waiting { needs, .. } => Some(needs),
            _ => None,
        };
        needs.into_iter().flatten()
    }

    /// Whether it waits for nothing but its turn in a concurrency group.
    pub fn waits_for_turn(&self) -> bool {
        matches!(&self.phase, Phase::Waiting { needs, .. } if needs.is_empty())
    }

    /// The groups that it has joined, with its tickets: its run's first.
    pub(super) fn turns(&self) -> impl Iterator<Item = (&str, u64, Member)> {
        let run = self.run_turn.as_ref().map(|RunTurn { group, ticket }| {
            (group.as_str(), *ticket, Member::Run(self.run.clone()))
        });
        let own = self
            .rules
            .concurrency
            .as_ref()
            .zip(self.turn)
            .map(|(own, ticket)| (own.group.as_str(), ticket, Member::Job(self.id.clone())));
        run.into_iter().chain(own)
    }

    /// Whether it has a ticket in the group of its own.
    pub(super) const fn has_joined(&self) -> bool {
        self.turn.is_some()
    }

    /// It has joined the group of its own.
    pub(super) const fn join(&mut self, ticket: u64) {
        self.turn = Some(ticket);
    }

    /// When the lease that can be used runs out.
    pub const fn expires_at(&self) -> Option<u64> {
        match &self.phase {
            Phase::Held(held) => Some(held.expires),
            _ => None,
        }
    }

    /// Its attempts from the first, each with its lease's state and when that ended.
    pub fn attempts(&self) -> impl Iterator<Item = (&Attempt, LeaseState, Option<u64>)> {
        let past = self.past.iter().map(|past| (&past.attempt, past.state, Some(past.ended_at)));
        let live = match &self.phase {
            Phase::Held(held) => Some((&held.attempt, held.state(), None)),
            _ => None,
        };
        past.chain(live)
    }

    /// The attempt of this lease, from 1, and the lease's state.
    pub(super) fn attempt_of(&self, lease: &LeaseKey) -> Option<(u32, &Attempt, LeaseState)> {
        let all = (1..).zip(self.attempts());
        let mut of = all.filter(|(_, (attempt, ..))| attempt.lease.is(lease));
        of.next().map(|(number, (attempt, state, _))| (number, attempt, state))
    }

    /// By when its runner has to have stopped it, and why, where it is to be canceled.
    pub const fn canceling(&self) -> Option<(u64, Why)> {
        match &self.phase {
            Phase::Held(Holding { stage: Stage::Canceling { deadline, why }, .. }) => {
                Some((*deadline, *why))
            }
            _ => None,
        }
    }

    /// When something happens to it by itself.
    pub(super) fn wake(&self, config: &Config) -> Option<u64> {
        match &self.phase {
            Phase::Held(held) => Some(held.expires.min(held.stage.end(config))),
            Phase::Pausing { until } => Some(*until),
            _ => None,
        }
    }

    /// When it joins the queue to be tried again.
    pub const fn resumes_at(&self) -> Option<u64> {
        match &self.phase {
            Phase::Pausing { until } => Some(*until),
            _ => None,
        }
    }

    /// What its end is for the jobs that need it.
    pub(super) fn went(&self) -> Went {
        match &self.phase {
            Phase::Ended { state: JobState::Succeeded, .. } => Went::Well,
            Phase::Ended { state: JobState::Failed | JobState::TimedOut, .. } => {
                if self.rules.allow_failure == Some(true) { Went::Well } else { Went::Badly }
            }
            Phase::Ended { why: Why::NeedFailed, .. } => Went::Badly,
            _ => Went::Unfinished,
        }
    }

    /// A job that it waits for has ended.
    pub(super) fn need_ended(&mut self, need: &JobId, went: Went, now: u64) -> Then {
        let Phase::Waiting { needs, others } = &mut self.phase else { return Then::Stays };
        needs.remove(need);
        *others = went.max(*others);
        let (left, went) = (needs.len(), *others);
        match self.rules.run_if.unwrap_or(RunIf::Success) {
            RunIf::Success if went == Went::Badly => self.skip(Why::NeedFailed, now),
            RunIf::Success if went == Went::Unfinished => self.skip(Why::NeedUnfinished, now),
            _ if left > 0 => Then::Stays,
            RunIf::Failure if went == Went::Well => self.skip(Why::NoNeedFailed, now),
            RunIf::Failure if went == Went::Unfinished => self.skip(Why::NeedUnfinished, now),
            _ => Then::Requeue,
        }
    }

    fn skip(&mut self, why: Why, now: u64) -> Then {
        self.finalize(JobState::Skipped, why, now)
    }

    /// Ends its pause before another attempt: it keeps its turns, and so joins the queue.
    pub(super) fn resume(&mut self) {
        if let Phase::Pausing { .. } = self.phase {
            self.phase = Phase::Waiting { needs: BTreeSet::new(), others: Went::Well };
        }
    }

    /// Puts it into the queue, unless it has ended.
    pub(super) fn queue(&mut self, position: u64) {
        if !matches!(self.phase, Phase::Ended { .. }) {
            self.phase = Phase::Queued { position };
        }
    }

    /// Grants it, if it stands in the queue.
    pub(super) fn grant(
        &mut self,
        config: &Config,
        runner: RunnerId,
        lease: LeaseKey,
        now: u64,
    ) -> bool {
        let Phase::Queued { .. } = self.phase else { return false };
        let attempt =
            Attempt { runner, lease, granted_at: now, acked_at: None, heartbeat_at: None };
        self.phase = Phase::Held(Holding {
            attempt,
            expires: now.saturating_add(ms(config.lease_ttl_seconds)),
            stage: Stage::Granted { ack_by: now.saturating_add(ms(config.ack_timeout_seconds)) },
        });
        true
    }

    /// The lease that a message bears, if it can be used.
    fn held(&mut self, lease: &LeaseKey) -> Result<&mut Holding, Refusal> {
        match &mut self.phase {
            Phase::Held(held) if held.attempt.lease.is(lease) => Ok(held),
            _ => {
                let past = self.past.iter().find(|past| past.attempt.lease.is(lease));
                Err(Refusal::Stale(past.map_or(Stale::UnknownLease, |past| ended(past.state))))
            }
        }
    }

    /// The holder has accepted the lease.
    pub(super) fn ack(&mut self, lease: &LeaseKey, now: u64) -> Result<(), Refusal> {
        let runtime = ms(self.rules.max_runtime_seconds);
        let held = self.held(lease)?;
        if let Stage::Granted { .. } = held.stage {
            held.stage = Stage::Starting { until: now.saturating_add(runtime) };
            held.attempt.acked_at = Some(now);
        }
        Ok(())
    }

    /// The holder lives.
    pub(super) fn heartbeat(
        &mut self,
        config: &Config,
        lease: &LeaseKey,
        now: u64,
    ) -> Result<Beat, Refusal> {
        let held = self.held(lease)?;
        let mut beat = Beat { ttl: ms(config.lease_ttl_seconds), cancel: None, grace: None };
        match held.stage {
            Stage::Granted { .. } => return Err(Refusal::NotAcked),
            Stage::Starting { until } | Stage::Running { until } => {
                held.stage = Stage::Running { until };
                if now >= until {
                    let left = held.stage.end(config).saturating_sub(now);
                    (beat.ttl, beat.grace) = (beat.ttl.min(left), Some(left));
                }
            }
            Stage::Canceling { deadline, .. } => beat.cancel = Some(deadline.saturating_sub(now)),
        }
        held.expires = now.saturating_add(beat.ttl);
        held.attempt.heartbeat_at = Some(now);
        Ok(beat)
    }

    /// The holder is done; `said` is the hash of all that it says. `None`: it has said so before.
    pub(super) fn complete(
        &mut self,
        lease: &LeaseKey,
        done: Done,
        said: Hash,
        now: u64,
    ) -> Result<Option<Then>, Refusal> {
        let stage = self.held(lease).map(|held| held.stage);
        match stage {
            Ok(Stage::Granted { .. }) => Err(Refusal::NotAcked),
            Ok(Stage::Canceling { .. }) => Err(Refusal::CancelRequested),
            Ok(stage @ (Stage::Starting { .. } | Stage::Running { .. })) => {
                let on = self.rules.retry_on;
                let in_time = !stage.is_overtime(now);
                let (end, why, again) = match done {
                    Done::Failed if in_time => (JobState::Failed, Why::Reported, on.failure),
                    Done::Succeeded if in_time => (JobState::Succeeded, Why::Reported, false),
                    _ => timed_out(on),
                };
                Ok(Some(self.leave(LeaseState::Completed, Some(said), end, why, again, now)))
            }
            Err(refusal) => self.repeats(lease, LeaseState::Completed, said, refusal),
        }
    }

    /// The holder has stopped; `said` is the hash of all that it says. `None`: it has said so
    /// before.
    pub(super) fn cancel_ack(
        &mut self,
        lease: &LeaseKey,
        said: Hash,
        now: u64,
    ) -> Result<Option<Then>, Refusal> {
        match self.held(lease).map(|held| held.stage) {
            Ok(Stage::Canceling { why, .. }) => {
                let (state, end) = (LeaseState::Canceled, JobState::Canceled);
                Ok(Some(self.leave(state, Some(said), end, why, false, now)))
            }
            Ok(_) => Err(Refusal::NoCancelRequested),
            Err(refusal) => self.repeats(lease, LeaseState::Canceled, said, refusal),
        }
    }

    /// Accepts what was accepted before, with which the lease ended.
    fn repeats(
        &self,
        lease: &LeaseKey,
        state: LeaseState,
        said: Hash,
        refusal: Refusal,
    ) -> Result<Option<Then>, Refusal> {
        let same = |past: &&Past| past.attempt.lease.is(lease) && past.state == state;
        match self.past.iter().find(same) {
            Some(past) if past.said == Some(said) => Ok(None),
            _ => Err(refusal),
        }
    }

    /// Stops it for this reason.
    pub(super) fn cancel(&mut self, config: &Config, why: Why, now: u64) -> Result<Then, Refusal> {
        let state = JobState::Canceled;
        match &mut self.phase {
            Phase::Waiting { .. } | Phase::Pausing { .. } | Phase::Queued { .. } => {
                Ok(self.finalize(state, why, now))
            }
            Phase::Held(held) => match held.stage {
                Stage::Granted { .. } => {
                    Ok(self.leave(LeaseState::Revoked, None, state, why, false, now))
                }
                Stage::Starting { .. } | Stage::Running { .. } => {
                    let mut deadline = now.saturating_add(ms(config.cancel_deadline_seconds));
                    if held.stage.is_overtime(now) {
                        deadline = deadline.min(held.stage.end(config));
                    }
                    held.stage = Stage::Canceling { deadline, why };
                    Ok(Then::Stays)
                }
                Stage::Canceling { .. } => Ok(Then::Stays),
            },
            Phase::Ended { state: JobState::Canceled, .. } => Ok(Then::Stays),
            Phase::Ended { .. } => Err(Refusal::Ended),
        }
    }

    /// Somebody takes the lease back.
    pub(super) fn revoke(&mut self, now: u64) -> Result<Then, Refusal> {
        match self.phase {
            Phase::Held(_) => Ok(self.lose(LeaseState::Revoked, now)),
            Phase::Ended { .. } => Err(Refusal::Ended),
            _ => Err(Refusal::NotLeased),
        }
    }

    /// The first of its times that has come by `now` is up.
    pub(super) fn time_out(&mut self, config: &Config, now: u64) -> Then {
        let held = match &self.phase {
            Phase::Held(held) => held,
            Phase::Pausing { until } if *until <= now => return Then::Requeue,
            _ => return Then::Stays,
        };
        let (expires, end) = (held.expires, held.stage.end(config));
        if now < expires.min(end) {
            Then::Stays
        } else if expires < end {
            self.lose(LeaseState::Expired, expires)
        } else {
            self.lose(LeaseState::Revoked, end)
        }
    }

    /// The lease is lost: the job ends as canceled if it was to be stopped, as timed out if its
    /// time is over; else it is tried again.
    fn lose(&mut self, state: LeaseState, now: u64) -> Then {
        let on = self.rules.retry_on;
        let (end, why, again) = match &self.phase {
            Phase::Held(Holding { stage: Stage::Canceling { why, .. }, .. }) => {
                (JobState::Canceled, *why, false)
            }
            Phase::Held(held) if held.stage.is_overtime(now) => timed_out(on),
            _ => (JobState::Failed, Why::LeaseLost, on.lease_lost),
        };
        self.leave(state, None, end, why, again, now)
    }

    /// Ends the lease, and the job with it unless it is to be tried again and has attempts left.
    fn leave(
        &mut self,
        lease: LeaseState,
        said: Option<Hash>,
        end: JobState,
        why: Why,
        again: bool,
        now: u64,
    ) -> Then {
        // Until the board queues it, it waits for nothing.
        let phase = mem::replace(&mut self.phase, Phase::Pausing { until: now });
        if let Phase::Held(Holding { attempt, .. }) = phase {
            self.past.push(Past { attempt, state: lease, ended_at: now, said });
        }
        if !again || self.attempt() >= self.rules.max_attempts {
            return self.finalize(end, why, now);
        }
        match self.backoff() {
            0 => Then::Requeue,
            pause => {
                self.phase = Phase::Pausing { until: now.saturating_add(ms(pause)) };
                Then::Stays
            }
        }
    }

    /// The pause after its last attempt, in seconds.
    fn backoff(&self) -> u64 {
        let first = self.rules.backoff_seconds.unwrap_or(0);
        let doubled = self.attempt().saturating_sub(1).min(u64::BITS - 1);
        first.saturating_mul(1 << doubled).min(MAX_BACKOFF_SECONDS)
    }

    fn finalize(&mut self, state: JobState, why: Why, at: u64) -> Then {
        self.phase = Phase::Ended { state, why, at };
        self.finalized += 1;
        Then::Ends
    }
}

impl Holding {
    const fn state(&self) -> LeaseState {
        match self.stage {
            Stage::Granted { .. } => LeaseState::Granted,
            _ => LeaseState::Active,
        }
    }
}

/// How a job ends whose time is over: the state, the reason, and whether it is tried again.
const fn timed_out(on: RetryOn) -> (JobState, Why, bool) {
    (JobState::TimedOut, Why::MaxRuntime, on.timeout)
}

impl Stage {
    /// The time that it has.
    const fn until(self) -> u64 {
        match self {
            Self::Granted { ack_by: until }
            | Self::Starting { until }
            | Self::Running { until }
            | Self::Canceling { deadline: until, .. } => until,
        }
    }

    /// When it ends by itself.
    const fn end(self, config: &Config) -> u64 {
        match self {
            Self::Starting { until } | Self::Running { until } => {
                until.saturating_add(ms(config.grace_seconds))
            }
            other => other.until(),
        }
    }

    /// Whether the job's time is over.
    const fn is_overtime(self, now: u64) -> bool {
        match self {
            Self::Starting { until } | Self::Running { until } => now >= until,
            _ => false,
        }
    }
}

/// What a lease in this state is no good for.
const fn ended(state: LeaseState) -> Stale {
    match state {
        LeaseState::Expired => Stale::LeaseExpired,
        LeaseState::Revoked => Stale::LeaseRevoked,
        LeaseState::Completed => Stale::LeaseCompleted,
        LeaseState::Canceled => Stale::LeaseCanceled,
        LeaseState::Granted | LeaseState::Active => Stale::UnknownLease,
    }
}

record!(Holding { attempt, expires, stage });
record!(Job { id, run, rules, phase, past, finalized, turn, run_turn });

impl Encode for Stage {
    fn encode(&self, w: &mut Writer) {
        let kind = match self {
            Self::Granted { .. } => 0,
            Self::Starting { .. } => 1,
            Self::Running { .. } => 2,
            Self::Canceling { why: Why::Superseded, .. } => 4,
            Self::Canceling { .. } => 3,
        };
        w.list(2);
        w.u64(kind);
        w.u64(self.until());
    }
}

impl Decode for Stage {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (kind, until) = Decode::decode(r)?;
        match kind {
            0_u64 => Ok(Self::Granted { ack_by: until }),
            1 => Ok(Self::Starting { until }),
            2 => Ok(Self::Running { until }),
            3 => Ok(Self::Canceling { deadline: until, why: Why::Requested }),
            4 => Ok(Self::Canceling { deadline: until, why: Why::Superseded }),
            _ => Err(DecodeError::Invalid("unknown stage of a lease")),
        }
    }
}

impl Encode for Phase {
    fn encode(&self, w: &mut Writer) {
        match self {
            Self::Waiting { needs, others } => {
                let well = *others == Went::Well;
                w.list(if well { 2 } else { 3 });
                w.u64(0);
                needs.iter().cloned().collect::<Vec<_>>().encode(w);
                if !well {
                    w.u64(*others as u64);
                }
            }
            Self::Pausing { until } => {
                w.list(2);
                w.u64(4);
                w.u64(*until);
            }
            Self::Queued { position } => {
                w.list(2);
                w.u64(1);
                w.u64(*position);
            }
            Self::Held(held) => {
                w.list(2);
                w.u64(2);
                held.encode(w);
            }
            Self::Ended { state, why, at } => {
                w.list(4);
                w.u64(3);
                state.encode(w);
                why.encode(w);
                w.u64(*at);
            }
        }
    }
}

impl Decode for Phase {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let len = r.list(4)?;
        match (r.u64()?, len) {
            (0, 2) => Vec::decode(r).map(|needs| Self::Waiting {
                needs: needs.into_iter().collect(),
                others: Went::Well,
            }),
            (0, 3) => {
                let needs = Vec::decode(r)?.into_iter().collect();
                let others = match r.u64()? {
                    1 => Went::Unfinished,
                    2 => Went::Badly,
                    _ => return Err(DecodeError::Invalid("unknown end of a needed job")),
                };
                Ok(Self::Waiting { needs, others })
            }
            (4, 2) => r.u64().map(|until| Self::Pausing { until }),
            (1, 2) => r.u64().map(|position| Self::Queued { position }),
            (2, 2) => Decode::decode(r).map(Self::Held),
            (3, 4) => {
                Ok(Self::Ended { state: Decode::decode(r)?, why: Decode::decode(r)?, at: r.u64()? })
            }
            _ => Err(DecodeError::Invalid("unknown phase of a job")),
        }
    }
}

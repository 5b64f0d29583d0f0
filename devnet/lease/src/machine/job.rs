//! One job: the phases it goes through, its attempts, and how they end.
//!
//! The state of a job is a [`AttemptPhase`]. A lease that can be used is part of its phase, so that
//! there is at most one, and only in the phase that has one. All changes go through functions here
//! that destructure the phase.

mod format;

use super::attempt::{Attempt, Beat, Done, Holding, Past, Stage, ended};
use super::{
    Concurrency, Config, JobId, JobState, LeaseKey, LeaseState, Member, Refusal, RunId, RunIf,
    RunnerId, Stale, Why,
    config::{MAX_BACKOFF_SECONDS, ms},
};
use cowboy_engine::{primitives::Hash, record};
use std::{collections::BTreeSet, mem};

/// The reasons for which a job is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOn {
    pub lease_lost: bool,
    pub failure: bool,
    pub timeout: bool,
}
record!(RetryOn { lease_lost, failure, timeout });

impl Default for RetryOn {
    fn default() -> Self {
        Self { lease_lost: true, failure: false, timeout: false }
    }
}

/// The rules that hold for all of a job's attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    pub requires: Vec<String>,
    /// Maximum duration of an attempt from its ack.
    pub max_runtime_seconds: u64,
    pub max_attempts: u32,
    pub retry_on: RetryOn,
    /// The pause before the second attempt in seconds. It doubles before each further attempt, up
    /// to [`MAX_BACKOFF_SECONDS`]; absent: no pause.
    pub backoff_seconds: Option<u64>,
    pub run_if: Option<RunIf>,
    /// If true, jobs that need this one treat its failure or timeout as a success.
    pub allow_failure: Option<bool>,
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

/// A job as it is submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    pub id: JobId,
    pub rules: Rules,
    /// Jobs of the same run that must end, as `run_if` says, before this one is queued.
    pub needs: BTreeSet<JobId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AttemptPhase {
    /// Jobs that it needs have not ended yet; `others` is the worst outcome of those that have.
    Waiting {
        needs: BTreeSet<JobId>,
        others: Went,
    },
    /// It joins the queue at `until` for another attempt.
    Pausing {
        until: u64,
    },
    Queued {
        position: u64,
    },
    Held(Holding),
    /// It ended at this time, in milliseconds.
    Ended {
        state: JobState,
        why: Why,
        at: u64,
    },
}

/// The outcome of needed jobs, from best to worst: for several jobs the worst counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Went {
    /// It succeeded, or was allowed to fail.
    Well,
    /// It was canceled, or skipped although none failed.
    Unfinished,
    /// It failed, or was skipped because another one did.
    Badly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Stays,
    Requeue,
    Ends,
}

/// A job with its current attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseJob {
    id: JobId,
    run: RunId,
    rules: Rules,
    phase: AttemptPhase,
    past: Vec<Past>,
    /// Number of times it has become terminal: at most once.
    finalized: u32,
    /// Its ticket in its own concurrency group; absent before it joins.
    turn: Option<u64>,
    run_turn: Option<RunTurn>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunTurn {
    pub group: String,
    pub ticket: u64,
}
record!(RunTurn { group, ticket });

impl LeaseJob {
    pub(super) fn new(run: RunId, job: NewJob, run_turn: Option<RunTurn>) -> Self {
        let NewJob { id, rules, needs } = job;
        let phase = AttemptPhase::Waiting { needs, others: Went::Well };
        Self { id, run, rules, phase, past: Vec::new(), finalized: 0, turn: None, run_turn }
    }

    pub const fn id(&self) -> &JobId {
        &self.id
    }

    pub const fn run(&self) -> &RunId {
        &self.run
    }

    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    pub const fn state(&self) -> JobState {
        match &self.phase {
            AttemptPhase::Waiting { .. }
            | AttemptPhase::Pausing { .. }
            | AttemptPhase::Queued { .. } => JobState::Queued,
            AttemptPhase::Held(held) => match held.stage {
                Stage::Granted { .. } => JobState::Leased,
                Stage::Starting { .. } => JobState::Starting,
                Stage::Running { .. } => JobState::Running,
                Stage::Canceling { .. } => JobState::CancelRequested,
            },
            AttemptPhase::Ended { state, .. } => *state,
        }
    }

    /// `None` while it is open.
    pub const fn end(&self) -> Option<(u64, Why)> {
        match &self.phase {
            AttemptPhase::Ended { why, at, .. } => Some((*at, *why)),
            _ => None,
        }
    }

    /// From 1; 0 before the first.
    pub fn attempt(&self) -> u32 {
        let live = u32::from(matches!(self.phase, AttemptPhase::Held(_)));
        u32::try_from(self.past.len()).unwrap_or(u32::MAX).saturating_add(live)
    }

    pub const fn finalized(&self) -> u32 {
        self.finalized
    }

    pub const fn position(&self) -> Option<u64> {
        match &self.phase {
            AttemptPhase::Queued { position } => Some(*position),
            _ => None,
        }
    }

    pub fn needs(&self) -> impl Iterator<Item = &JobId> {
        let needs = match &self.phase {
            AttemptPhase::Waiting { needs, .. } => Some(needs),
            _ => None,
        };
        needs.into_iter().flatten()
    }

    pub fn waits_for_turn(&self) -> bool {
        matches!(&self.phase, AttemptPhase::Waiting { needs, .. } if needs.is_empty())
    }

    /// The groups that it has joined and its tickets, its run's group first.
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

    pub(super) const fn has_joined(&self) -> bool {
        self.turn.is_some()
    }

    pub(super) const fn join(&mut self, ticket: u64) {
        self.turn = Some(ticket);
    }

    pub const fn expires_at(&self) -> Option<u64> {
        match &self.phase {
            AttemptPhase::Held(held) => Some(held.expires),
            _ => None,
        }
    }

    /// Its attempts from the first, each with its lease's state and the time at which the lease
    /// ended.
    pub fn attempts(&self) -> impl Iterator<Item = (&Attempt, LeaseState, Option<u64>)> {
        let past = self.past.iter().map(|past| (&past.attempt, past.state, Some(past.ended_at)));
        let live = match &self.phase {
            AttemptPhase::Held(held) => Some((&held.attempt, held.state(), None)),
            _ => None,
        };
        past.chain(live)
    }

    pub(super) fn attempt_of(&self, lease: &LeaseKey) -> Option<(u32, &Attempt, LeaseState)> {
        let all = (1..).zip(self.attempts());
        let mut of = all.filter(|(_, (attempt, ..))| attempt.lease.is(lease));
        of.next().map(|(number, (attempt, state, _))| (number, attempt, state))
    }

    pub const fn canceling(&self) -> Option<(u64, Why)> {
        match &self.phase {
            AttemptPhase::Held(Holding { stage: Stage::Canceling { deadline, why }, .. }) => {
                Some((*deadline, *why))
            }
            _ => None,
        }
    }

    pub(super) fn wake(&self, config: &Config) -> Option<u64> {
        match &self.phase {
            AttemptPhase::Held(held) => Some(held.expires.min(held.stage.end(config))),
            AttemptPhase::Pausing { until } => Some(*until),
            _ => None,
        }
    }

    pub const fn resumes_at(&self) -> Option<u64> {
        match &self.phase {
            AttemptPhase::Pausing { until } => Some(*until),
            _ => None,
        }
    }

    pub(super) fn went(&self) -> Went {
        match &self.phase {
            AttemptPhase::Ended { state: JobState::Succeeded, .. } => Went::Well,
            AttemptPhase::Ended { state: JobState::Failed | JobState::TimedOut, .. } => {
                if self.rules.allow_failure == Some(true) { Went::Well } else { Went::Badly }
            }
            AttemptPhase::Ended { why: Why::NeedFailed, .. } => Went::Badly,
            _ => Went::Unfinished,
        }
    }

    pub(super) fn need_ended(&mut self, need: &JobId, went: Went, now: u64) -> Then {
        let AttemptPhase::Waiting { needs, others } = &mut self.phase else { return Then::Stays };
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

    /// Ends the pause before another attempt. It keeps its turns, so it joins the queue.
    pub(super) fn resume(&mut self) {
        if let AttemptPhase::Pausing { .. } = self.phase {
            self.phase = AttemptPhase::Waiting { needs: BTreeSet::new(), others: Went::Well };
        }
    }

    /// Sets its position in the queue, unless it has ended.
    pub(super) fn queue(&mut self, position: u64) {
        if !matches!(self.phase, AttemptPhase::Ended { .. }) {
            self.phase = AttemptPhase::Queued { position };
        }
    }

    pub(super) fn grant(
        &mut self,
        config: &Config,
        runner: RunnerId,
        lease: LeaseKey,
        now: u64,
    ) -> bool {
        let AttemptPhase::Queued { .. } = self.phase else { return false };
        let attempt =
            Attempt { runner, lease, granted_at: now, acked_at: None, heartbeat_at: None };
        self.phase = AttemptPhase::Held(Holding {
            attempt,
            expires: now.saturating_add(ms(config.lease_ttl_seconds)),
            stage: Stage::Granted { ack_by: now.saturating_add(ms(config.ack_timeout_seconds)) },
        });
        true
    }

    fn held(&mut self, lease: &LeaseKey) -> Result<&mut Holding, Refusal> {
        match &mut self.phase {
            AttemptPhase::Held(held) if held.attempt.lease.is(lease) => Ok(held),
            _ => {
                let past = self.past.iter().find(|past| past.attempt.lease.is(lease));
                Err(Refusal::Stale(past.map_or(Stale::UnknownLease, |past| ended(past.state))))
            }
        }
    }

    /// The holder has accepted the lease; a repeat changes nothing.
    pub(super) fn ack(&mut self, lease: &LeaseKey, now: u64) -> Result<(), Refusal> {
        let runtime = ms(self.rules.max_runtime_seconds);
        let held = self.held(lease)?;
        if let Stage::Granted { .. } = held.stage {
            held.stage = Stage::Starting { until: now.saturating_add(runtime) };
            held.attempt.acked_at = Some(now);
        }
        Ok(())
    }

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

    /// The holder is done; `said` is the hash of its message. `None`: a repeat of the same message.
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

    /// The holder has stopped; `said` is the hash of its message. `None`: a repeat of the same
    /// message.
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

    /// Accepts a repeat of the message that ended the lease.
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

    pub(super) fn cancel(&mut self, config: &Config, why: Why, now: u64) -> Result<Then, Refusal> {
        let state = JobState::Canceled;
        match &mut self.phase {
            AttemptPhase::Waiting { .. }
            | AttemptPhase::Pausing { .. }
            | AttemptPhase::Queued { .. } => Ok(self.finalize(state, why, now)),
            AttemptPhase::Held(held) => match held.stage {
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
            AttemptPhase::Ended { state: JobState::Canceled, .. } => Ok(Then::Stays),
            AttemptPhase::Ended { .. } => Err(Refusal::Ended),
        }
    }

    pub(super) fn revoke(&mut self, now: u64) -> Result<Then, Refusal> {
        match self.phase {
            AttemptPhase::Held(_) => Ok(self.lose(LeaseState::Revoked, now)),
            AttemptPhase::Ended { .. } => Err(Refusal::Ended),
            _ => Err(Refusal::NotLeased),
        }
    }

    /// Handles the first deadline that has passed by `now`.
    pub(super) fn time_out(&mut self, config: &Config, now: u64) -> Then {
        let held = match &self.phase {
            AttemptPhase::Held(held) => held,
            AttemptPhase::Pausing { until } if *until <= now => return Then::Requeue,
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

    /// Handles the loss of the lease: the job ends as canceled if it was to be stopped, and as
    /// timed out if its time is over; otherwise it is tried again.
    fn lose(&mut self, state: LeaseState, now: u64) -> Then {
        let on = self.rules.retry_on;
        let (end, why, again) = match &self.phase {
            AttemptPhase::Held(Holding { stage: Stage::Canceling { why, .. }, .. }) => {
                (JobState::Canceled, *why, false)
            }
            AttemptPhase::Held(held) if held.stage.is_overtime(now) => timed_out(on),
            _ => (JobState::Failed, Why::LeaseLost, on.lease_lost),
        };
        self.leave(state, None, end, why, again, now)
    }

    /// Ends the lease. The job ends too, unless `again` is set and attempts are left.
    fn leave(
        &mut self,
        lease: LeaseState,
        said: Option<Hash>,
        end: JobState,
        why: Why,
        again: bool,
        now: u64,
    ) -> Then {
        // It waits for nothing until the board queues it.
        let phase = mem::replace(&mut self.phase, AttemptPhase::Pausing { until: now });
        if let AttemptPhase::Held(Holding { attempt, .. }) = phase {
            self.past.push(Past { attempt, state: lease, ended_at: now, said });
        }
        if !again || self.attempt() >= self.rules.max_attempts {
            return self.finalize(end, why, now);
        }
        match self.backoff() {
            0 => Then::Requeue,
            pause => {
                self.phase = AttemptPhase::Pausing { until: now.saturating_add(ms(pause)) };
                Then::Stays
            }
        }
    }

    /// The pause after the latest attempt, in seconds.
    fn backoff(&self) -> u64 {
        let first = self.rules.backoff_seconds.unwrap_or(0);
        let doubled = self.attempt().saturating_sub(1).min(u64::BITS - 1);
        first.saturating_mul(1 << doubled).min(MAX_BACKOFF_SECONDS)
    }

    fn finalize(&mut self, state: JobState, why: Why, at: u64) -> Then {
        self.phase = AttemptPhase::Ended { state, why, at };
        self.finalized += 1;
        Then::Ends
    }
}

/// The end of a job whose time is over: state, reason, and whether it is tried again.
const fn timed_out(on: RetryOn) -> (JobState, Why, bool) {
    (JobState::TimedOut, Why::MaxRuntime, on.timeout)
}

record!(LeaseJob { id, run, rules, phase, past, finalized, turn, run_turn });

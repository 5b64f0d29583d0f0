//! All jobs: the queue, grants to runners, and deadlines of leases.

mod settle;

use super::{
    Attempt, Beat, Concurrency, Config, ConfigError, Done, JobId, JobState, LeaseJob, LeaseKey,
    LeaseState, Member, NewJob, Refusal, RunId, RunnerId, Stale, Why,
    attempt::ended,
    config::{MAX_ATTEMPTS, MAX_BACKOFF_SECONDS, MAX_SECONDS},
    job::{RunTurn, Then},
    queue::{MAX_SETS, Queue},
    turns::Turns,
};
use cowboy_engine::primitives::Hash;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry},
    mem,
};

/// Maximum number of jobs in a run.
pub const MAX_RUN_JOBS: usize = 1_000;
/// Maximum number of jobs of all runs that have not ended.
pub const MAX_OPEN_JOBS: usize = 100_000;

/// Every job and every lease, with one owner.
///
/// Each call passes the current time in milliseconds; time that goes backwards is ignored.
/// Everything that was due until then happens first, in the order in which it was due. Between
/// calls [`next_wake`](Self::next_wake) says when to call [`advance`](Self::advance).
///
/// After each call [`drain`](Self::drain) returns the changes. The owner of the board stores them
/// before it reveals the call's outcome, and can rebuild the board from them
/// ([`restore`](Self::restore)).
#[derive(Clone, Debug, Default)]
pub struct Board {
    config: Config,
    now: u64,
    jobs: BTreeMap<JobId, LeaseJob>,
    runs: BTreeMap<RunId, BTreeSet<JobId>>,
    states: BTreeMap<JobState, usize>,
    needed_by: BTreeMap<JobId, BTreeSet<JobId>>,
    queue: Queue,
    turns: Turns,
    /// The job of each lease, live or ended.
    leases: BTreeMap<LeaseKey, JobId>,
    /// The times at which jobs change without a message.
    wakes: BTreeSet<(u64, JobId)>,
    changes: Changes,
}

/// The changes since the last [`Board::drain`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Changes {
    pub jobs: BTreeSet<JobId>,
    /// State transitions, in order.
    pub events: Vec<LeaseEvent>,
}

/// A job or its lease has entered another state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseEvent {
    /// In milliseconds.
    pub at: u64,
    pub job: JobId,
    /// The number of the attempt; 0 before the first.
    pub attempt: u32,
    pub state: JobState,
    pub lease: Option<LeaseState>,
}

/// A runner's request for work.
#[derive(Clone, Copy, Debug)]
pub struct WorkRequest<'a> {
    pub runner: &'a RunnerId,
    pub capabilities: &'a BTreeSet<String>,
    /// The key of the id that a granted lease will have; unique among leases.
    pub lease: LeaseKey,
}

/// A lease that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    pub job: JobId,
    pub run: RunId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    pub max_runtime_seconds: u64,
}

/// Why a run is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error("a run has from 1 to {MAX_RUN_JOBS} jobs, not {0}")]
    Jobs(usize),
    #[error("{MAX_OPEN_JOBS} jobs are open already")]
    Full,
    #[error("job `{0}`: open jobs have {MAX_SETS} different sets of requirements already")]
    Sets(JobId),
    #[error("the id `{0}` is taken")]
    Taken(String),
    #[error("job `{job}` needs `{need}`, which the run does not have")]
    UnknownNeed { job: JobId, need: JobId },
    #[error("job `{0}` needs itself, through others or directly")]
    Cycle(JobId),
    #[error("job `{job}`: {field} is {got}, not from 1 to {most}")]
    Rule { job: JobId, field: &'static str, got: u64, most: u64 },
}

/// Why a board cannot be restored from jobs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("job `{0}` collides with another job")]
    Twice(JobId),
}

/// The jobs that would wait for themselves, or for such a job; `jobs` has each with those that it
/// needs.
pub fn stuck<'a, J: Ord, N>(jobs: &BTreeMap<&'a J, &'a N>) -> BTreeSet<&'a J>
where
    &'a N: IntoIterator<Item = &'a J>,
{
    // Repeatedly removes the jobs that need no remaining job.
    let mut left = BTreeMap::new();
    let mut needed_by: BTreeMap<&J, Vec<&J>> = BTreeMap::new();
    for (&job, &needs) in jobs {
        left.insert(job, needs.into_iter().count());
        needs.into_iter().for_each(|need| needed_by.entry(need).or_default().push(job));
    }
    let free = left.iter().filter(|(_, needs)| **needs == 0);
    let mut free: Vec<&J> = free.map(|(job, _)| *job).collect();
    while let Some(done) = free.pop() {
        left.remove(done);
        for job in needed_by.remove(done).unwrap_or_default() {
            let needs =
                left.get_mut(job).expect("a job stays until all jobs that it needs have gone");
            *needs -= 1;
            if *needs == 0 {
                free.push(job);
            }
        }
    }
    left.into_keys().collect()
}

impl Board {
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { config, ..Self::default() })
    }

    /// Rebuilds the board from its jobs. Leases keep their deadlines; the grace after a job's time
    /// comes from the configuration.
    pub fn restore(
        config: Config,
        jobs: impl IntoIterator<Item = LeaseJob>,
    ) -> Result<Self, RestoreError> {
        let (mut board, mut positions) = (Self::new(config)?, BTreeSet::new());
        for job in jobs {
            let id = job.id().clone();
            let twice = || RestoreError::Twice(id.clone());
            if job.position().is_some_and(|position| !positions.insert(position)) {
                return Err(twice());
            }
            for (attempt, ..) in job.attempts() {
                if board.leases.insert(attempt.lease, id.clone()).is_some() {
                    return Err(twice());
                }
            }
            if !board.enter(&job) || board.jobs.insert(id.clone(), job).is_some() {
                return Err(twice());
            }
        }
        Ok(board)
    }

    pub const fn config(&self) -> &Config {
        &self.config
    }

    pub fn job(&self, id: &str) -> Option<&LeaseJob> {
        self.jobs.get(id)
    }

    pub fn run(&self, id: &str) -> Option<impl Iterator<Item = &LeaseJob>> {
        let jobs = self.runs.get(id)?;
        Some(jobs.iter().filter_map(|id| self.jobs.get(id)))
    }

    pub fn jobs(&self) -> impl Iterator<Item = &LeaseJob> {
        self.jobs.values()
    }

    /// The jobs that can be granted with their positions, in no particular order; the least
    /// position is first in the queue. Takes time linear in the number of queued jobs.
    pub fn queue(&self) -> impl Iterator<Item = (u64, &JobId)> {
        self.queue.all()
    }

    /// For each set of requirements with queued jobs, the first job and its position. A request for
    /// work walks this list: at most [`MAX_SETS`] entries, unless an earlier version took more.
    pub fn heads(&self) -> impl Iterator<Item = (&[String], u64, &JobId)> {
        self.queue.heads()
    }

    pub fn head(&self, requires: &[String]) -> Option<u64> {
        self.queue.head(requires)
    }

    /// The concurrency group for whose turn a job waits, and the member that has the turn.
    pub fn before(&self, job: &str) -> Option<(&str, &Member)> {
        let job = self.jobs.get(job).filter(|job| job.waits_for_turn())?;
        job.turns().find_map(|(group, ticket, member)| {
            Some((group, self.turns.before(group, ticket, &member).next()?))
        })
    }

    /// States without jobs may be missing.
    pub const fn states(&self) -> &BTreeMap<JobState, usize> {
        &self.states
    }

    /// Takes time linear in the sets of requirements.
    pub fn queued(&self) -> usize {
        self.queue.count()
    }

    fn open(&self) -> usize {
        let open = self.states.iter().filter(|(state, _)| !state.is_terminal());
        open.map(|(_, count)| count).sum()
    }

    /// In milliseconds.
    pub fn next_wake(&self) -> Option<u64> {
        self.wakes.first().map(|(at, _)| *at)
    }

    pub fn drain(&mut self) -> Changes {
        mem::take(&mut self.changes)
    }

    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
        while let Some((at, id)) = self.wakes.first().cloned().filter(|(at, _)| *at <= self.now) {
            let now = self.now;
            // Each change takes effect at its own deadline, however late this call is.
            let config = self.config;
            self.change(&id, at, |job, _| Ok(((), job.time_out(&config, now))))
                .expect("a job that wakes is there, and its deadline is never refused");
        }
    }

    /// Takes all jobs of a run or none. The run may share a concurrency group with others.
    pub fn submit(
        &mut self,
        run: RunId,
        concurrency: Option<Concurrency>,
        mut jobs: Vec<NewJob>,
        now: u64,
    ) -> Result<(), SubmitError> {
        self.advance(now);
        for job in &mut jobs {
            job.rules.requires.sort_unstable();
            job.rules.requires.dedup();
        }
        self.check(&run, &jobs)?;
        let mut steps = VecDeque::new();
        let turn = concurrency.map(|Concurrency { group, cancel }| {
            let member = Member::Run(run.clone());
            let ticket = self.turns.join(&group, member.clone());
            if cancel {
                self.supersede(&group, ticket, &member, &mut steps);
            }
            RunTurn { group, ticket }
        });
        for job in jobs {
            let (id, needs) = (job.id.clone(), job.needs.clone());
            for need in &needs {
                self.needed_by.entry(need.clone()).or_default().insert(id.clone());
            }
            let job = LeaseJob::new(run.clone(), job, turn.clone());
            self.queue.open(&job.rules().requires);
            *self.states.entry(job.state()).or_default() += 1;
            self.runs.entry(run.clone()).or_default().insert(id.clone());
            self.jobs.insert(id.clone(), job);
            if needs.is_empty() {
                self.admit(&id, &mut steps);
            }
            self.note(&id, self.now);
        }
        self.settle(steps, self.now);
        Ok(())
    }

    fn check(&self, run: &RunId, jobs: &[NewJob]) -> Result<(), SubmitError> {
        if jobs.is_empty() || jobs.len() > MAX_RUN_JOBS {
            return Err(SubmitError::Jobs(jobs.len()));
        }
        if self.open() + jobs.len() > MAX_OPEN_JOBS {
            return Err(SubmitError::Full);
        }
        if let Some(job) = self.queue.excess(jobs) {
            return Err(SubmitError::Sets(job.clone()));
        }
        if self.runs.contains_key(run) {
            return Err(SubmitError::Taken(run.0.clone()));
        }
        let mut own = BTreeMap::new();
        for job in jobs {
            if self.jobs.contains_key(&job.id) || own.insert(&job.id, &job.needs).is_some() {
                return Err(SubmitError::Taken(job.id.0.clone()));
            }
            let rules = [
                ("max_runtime_seconds", job.rules.max_runtime_seconds, MAX_SECONDS),
                ("max_attempts", job.rules.max_attempts.into(), MAX_ATTEMPTS.into()),
                ("backoff_seconds", job.rules.backoff_seconds.unwrap_or(1), MAX_BACKOFF_SECONDS),
            ];
            for (field, got, most) in rules {
                if !(1..=most).contains(&got) {
                    return Err(SubmitError::Rule { job: job.id.clone(), field, got, most });
                }
            }
        }
        for (job, needs) in &own {
            if let Some(need) = needs.iter().find(|need| !own.contains_key(need)) {
                return Err(SubmitError::UnknownNeed { job: (*job).clone(), need: need.clone() });
            }
        }
        stuck(&own).first().map_or(Ok(()), |job| Err(SubmitError::Cycle((*job).clone())))
    }

    /// Grants the first job in the queue that requires only capabilities the runner has.
    pub fn lease(&mut self, request: WorkRequest<'_>, now: u64) -> Option<Granted> {
        self.advance(now);
        let WorkRequest { runner, capabilities, lease } = request;
        let id = self.queue.first(capabilities)?.clone();
        let Entry::Vacant(free) = self.leases.entry(lease) else { return None };
        free.insert(id.clone());
        let (config, now) = (self.config, self.now);
        self.change(&id, now, |job, _| {
            job.grant(&config, runner.clone(), lease, now);
            Ok((
                Granted {
                    job: job.id().clone(),
                    run: job.run().clone(),
                    attempt: job.attempt(),
                    max_runtime_seconds: job.rules().max_runtime_seconds,
                },
                Then::Stays,
            ))
        })
        .ok()
    }

    pub fn ack(
        &mut self,
        lease: &LeaseKey,
        runner: &RunnerId,
        job: &str,
        now: u64,
    ) -> Result<(), Refusal> {
        let id = self.bearer(lease, runner, now)?;
        if id.0 != job {
            return Err(Refusal::WrongJob);
        }
        self.change(&id, self.now, |job, now| job.ack(lease, now).map(|()| ((), Then::Stays)))
    }

    /// Heartbeat: renews the holder's lease. Returns the time it has left, and a cancel request.
    pub fn heartbeat(
        &mut self,
        lease: &LeaseKey,
        runner: &RunnerId,
        now: u64,
    ) -> Result<Beat, Refusal> {
        let id = self.bearer(lease, runner, now)?;
        let config = self.config;
        self.change(&id, self.now, |job, now| {
            job.heartbeat(&config, lease, now).map(|beat| (beat, Then::Stays))
        })
    }

    /// Complete: the holder is done; `said` is the hash of its message. Returns false for a repeat.
    /// A completion in the grace after the job's time ends the job as timed out, whatever `end` is.
    pub fn complete(
        &mut self,
        lease: &LeaseKey,
        runner: &RunnerId,
        end: Done,
        said: Hash,
        now: u64,
    ) -> Result<bool, Refusal> {
        let id = self.bearer(lease, runner, now)?;
        self.change(&id, self.now, |job, now| {
            let then = job.complete(lease, end, said, now)?;
            Ok((then.is_some(), then.unwrap_or(Then::Stays)))
        })
    }

    /// CancelAck: the holder has stopped; `said` is the hash of its message. Returns false for a
    /// repeat.
    pub fn cancel_ack(
        &mut self,
        lease: &LeaseKey,
        runner: &RunnerId,
        said: Hash,
        now: u64,
    ) -> Result<bool, Refusal> {
        let id = self.bearer(lease, runner, now)?;
        self.change(&id, self.now, |job, now| {
            let then = job.cancel_ack(lease, said, now)?;
            Ok((then.is_some(), then.unwrap_or(Then::Stays)))
        })
    }

    pub fn active(
        &mut self,
        lease: &LeaseKey,
        runner: &RunnerId,
        now: u64,
    ) -> Result<(JobId, u32), Refusal> {
        let id = self.bearer(lease, runner, now)?;
        let (number, _, state) = self.attempt(&id, lease)?;
        match state {
            LeaseState::Active => Ok((id, number)),
            LeaseState::Granted => Err(Refusal::NotAcked),
            other => Err(Refusal::Stale(ended(other))),
        }
    }

    pub fn cancel(&mut self, job: &str, now: u64) -> Result<JobState, Refusal> {
        self.advance(now);
        let config = self.config;
        let id = self.known(job)?;
        self.change(&id, self.now, |job, now| {
            let then = job.cancel(&config, Why::Requested, now)?;
            Ok((job.state(), then))
        })
    }

    /// Cancels all jobs of the run that have not ended. Returns their number.
    pub fn cancel_run(&mut self, run: &str, now: u64) -> Result<usize, Refusal> {
        self.advance(now);
        let jobs = self.runs.get(run).ok_or(Refusal::NotFound)?;
        let open: Vec<_> =
            jobs.iter().filter(|id| !self.jobs[*id].state().is_terminal()).cloned().collect();
        for id in &open {
            // A job may have ended together with one that it needs.
            match self.cancel(&id.0, now) {
                Ok(_) | Err(Refusal::Ended) => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(open.len())
    }

    pub fn revoke(&mut self, job: &str, now: u64) -> Result<JobState, Refusal> {
        self.advance(now);
        let id = self.known(job)?;
        self.change(&id, self.now, |job, now| job.revoke(now).map(|then| ((), then)))?;
        Ok(self.jobs[&id].state())
    }

    /// Removes a run and its leases if all of its jobs have ended. Returns whether it was removed.
    pub fn forget(&mut self, run: &str) -> bool {
        let Some(jobs) = self.runs.get(run) else { return false };
        if jobs.iter().any(|id| !self.jobs[id].state().is_terminal()) {
            return false;
        }
        for id in self.runs.remove(run).into_iter().flatten() {
            if let Some(job) = self.jobs.remove(&id) {
                self.leaves(job.state());
                for (attempt, ..) in job.attempts() {
                    self.leases.remove(&attempt.lease);
                }
            }
        }
        true
    }

    fn known(&self, job: &str) -> Result<JobId, Refusal> {
        self.jobs.get(job).map(|job| job.id().clone()).ok_or(Refusal::NotFound)
    }

    fn attempt(
        &self,
        id: &JobId,
        lease: &LeaseKey,
    ) -> Result<(u32, &Attempt, LeaseState), Refusal> {
        let job = self.jobs.get(id);
        job.and_then(|job| job.attempt_of(lease)).ok_or(Refusal::Stale(Stale::UnknownLease))
    }

    fn bearer(&mut self, lease: &LeaseKey, runner: &RunnerId, now: u64) -> Result<JobId, Refusal> {
        self.advance(now);
        let unknown = Refusal::Stale(Stale::UnknownLease);
        let id = self.leases.get(lease).ok_or(unknown)?.clone();
        let (_, attempt, _) = self.attempt(&id, lease)?;
        if attempt.runner != *runner {
            return Err(Refusal::WrongRunner);
        }
        Ok(id)
    }

    /// Changes a job and handles the consequences. When `change` refuses, nothing changes.
    fn change<T>(
        &mut self,
        id: &JobId,
        now: u64,
        change: impl FnOnce(&mut LeaseJob, u64) -> Result<(T, Then), Refusal>,
    ) -> Result<T, Refusal> {
        let mut steps = VecDeque::new();
        let answer = self.apply(id, now, &mut steps, change)?;
        self.settle(steps, now);
        Ok(answer)
    }

    fn note(&mut self, id: &JobId, at: u64) {
        let job = &self.jobs[id];
        let event = LeaseEvent {
            at,
            job: id.clone(),
            attempt: job.attempt(),
            state: job.state(),
            lease: job.attempts().last().map(|(_, lease, _)| lease),
        };
        self.changes.jobs.insert(id.clone());
        self.changes.events.push(event);
    }
}

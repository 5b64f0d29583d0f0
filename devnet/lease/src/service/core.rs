//! The state of the owner's thread: the board, the file, the waiting runners, and their turns.

mod messages;
mod schedules;

use super::{
    Command, Counts, Reply, ServiceError, ServiceShared, StartError, Trouble, runners::Runners,
    spec::refused, waiting::Waiters,
};
use crate::{
    clock::Clock,
    machine::{self, Board, LeaseEvent, Member, Refusal, RunId, RunnerId},
    messages::{JobState, LeaseGranted, NewToken, RunnerSummary, Token, TokenRequest},
    store::{Record, Store, StoreError, TokenRow, Trigger},
    time,
    tokens::{new_secret, token_hash, token_id},
};
use cowboy_engine::primitives::Hash;
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

const MAX_TOKENS: usize = 100_000;
const FORGET: usize = 8;
/// Pause after a failure before the file is read again or a write is tried.
const RELOAD: Duration = Duration::from_secs(1);

pub(super) type ServiceResult<T> = Result<T, ServiceError>;

/// The answer to a message, sent when the changes of its turn are written or have failed.
enum Answer {
    Done(Box<dyn FnOnce(bool) + Send>),
    /// A grant. If the runner no longer waits for the answer, the lease is revoked.
    Granted(Reply<Option<LeaseGranted>>, Box<LeaseGranted>),
}

pub(super) enum LoadError {
    Store(StoreError),
    Restore(machine::RestoreError),
}

impl LoadError {
    pub fn into_start(self, path: &Path) -> StartError {
        match self {
            Self::Store(error) => error.into(),
            Self::Restore(error) => StartError::Restore { path: path.to_owned(), error },
        }
    }
}

impl From<StoreError> for LoadError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

#[derive(Default)]
struct Runs {
    next: i64,
    /// The run's number, and the number of its open jobs.
    open: BTreeMap<RunId, (i64, usize)>,
    ended: BTreeMap<i64, RunId>,
}

impl Runs {
    fn add(&mut self, number: i64, run: RunId, open: usize) {
        self.next = self.next.max(number + 1);
        if open == 0 {
            self.ended.insert(number, run);
        } else {
            self.open.insert(run, (number, open));
        }
    }

    fn job_ended(&mut self, run: &RunId) {
        let Some((number, open)) = self.open.get_mut(run) else { return };
        *open -= 1;
        if *open == 0 {
            self.ended.insert(*number, run.clone());
            self.open.remove(run);
        }
    }
}

pub(super) struct Core {
    board: Board,
    runs: Runs,
    /// In the order in which they were added.
    schedules: Vec<Trigger>,
    store: Store,
    keep_runs: usize,
    shared: Arc<ServiceShared>,
    waiters: Waiters,
    runners: Runners,
    closing: bool,
    now: u64,
    record: Record,
    answers: Vec<Answer>,
    entered: Vec<LeaseEvent>,
    /// Whether a change could not be written, so that the board is ahead of the file.
    failed: bool,
    /// When to try again by itself, while writes fail or the file cannot be read.
    retry: Option<u64>,
    wrote: bool,
    /// Whether all queued jobs must be offered to the waiting runners.
    offer_all: bool,
    /// Whether secret values were deleted that may still be in the write-ahead log.
    secrets_went: bool,
}

impl Core {
    pub fn new(
        mut store: Store,
        keep_runs: usize,
        shared: Arc<ServiceShared>,
    ) -> Result<Self, LoadError> {
        let (board, runs, schedules) = load(&mut store, &shared)?;
        Ok(Self {
            board,
            runs,
            schedules,
            store,
            keep_runs,
            shared,
            waiters: Waiters::default(),
            runners: Runners::default(),
            closing: false,
            now: 0,
            record: Record::default(),
            answers: Vec::new(),
            entered: Vec::new(),
            failed: false,
            retry: None,
            wrote: false,
            offer_all: false,
            secrets_went: false,
        })
    }

    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    pub fn next_wake(&self) -> Option<u64> {
        if self.retry.is_some() {
            return self.retry;
        }
        if self.runs.ended.len() > self.keep_runs || self.offer_all {
            return Some(0);
        }
        [self.board.next_wake(), self.waiters.next_deadline()].into_iter().flatten().min()
    }

    /// Whether secret values were deleted since the last call.
    pub fn secrets_went(&mut self) -> bool {
        mem::take(&mut self.secrets_went)
    }

    pub fn close(&mut self) {
        self.closing = true;
        while let Some(waiter) = self.waiters.any() {
            self.answer(waiter.reply, Ok(None));
        }
    }

    /// Applies these messages and the passing of time, commits all changes together, and answers.
    pub fn turn(&mut self, commands: impl Iterator<Item = Command>) {
        if self.failed {
            self.reload();
        }
        for command in commands {
            command(self);
        }
        // Failures are handled below.
        let _ = self.act(|core| {
            while let Some(waiter) = core.waiters.late(core.now) {
                core.answer(waiter.reply, Ok(None));
            }
            core.forget();
            Ok(())
        });
        loop {
            let unheard = self.finish();
            if unheard.is_empty() {
                return;
            }
            let _ = self.act(|core| {
                for job in &unheard {
                    // Fails if the lease was lost in another way.
                    let _ = core.board.revoke(job, core.now);
                }
                Ok(())
            });
        }
    }

    /// Applies a message, after the effects of time until now.
    pub fn act<T>(&mut self, act: impl FnOnce(&mut Self) -> ServiceResult<T>) -> ServiceResult<T> {
        if self.failed {
            return Err(ServiceError::Failed);
        }
        self.now = self.shared.clock.now();
        self.board.advance(self.now);
        self.note();
        let outcome = act(self);
        self.note();
        for event in &self.record.events {
            self.entered.push(event.clone());
            let job = self.board.job(&event.job.0).filter(|_| event.state.is_terminal());
            if let Some(job) = job {
                self.runs.job_ended(job.run());
            }
        }
        let record = mem::take(&mut self.record);
        if !record.is_empty() && !self.failed {
            let written = self.store.write(&record);
            self.wrote |= self.kept(written).is_some();
        }
        outcome
    }

    pub fn answer<T: Send + 'static>(&mut self, reply: Reply<T>, outcome: ServiceResult<T>) {
        self.answers.push(Answer::Done(Box::new(move |written| {
            // Fails if the sender no longer waits.
            let _ = reply.send(if written { outcome } else { Err(ServiceError::Failed) });
        })));
    }

    /// Moves the board's changes into the message's record, and offers newly queued jobs to waiting
    /// runners.
    fn note(&mut self) {
        let queued = self.record.note(&mut self.board);
        let all = mem::take(&mut self.offer_all);
        if self.waiters.len() == 0 {
            return;
        }
        // A runner that can do one job of a set of requirements can do all of them. So sets are
        // offered instead of jobs, in the order of their first jobs' positions.
        let mut offers: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        if all {
            let heads = self.board.heads();
            offers.extend(heads.map(|(requires, position, _)| (position, requires.to_vec())));
        } else {
            let jobs = queued.iter().filter_map(|id| self.board.job(&id.0));
            let sets: BTreeSet<&[String]> = jobs.map(|job| &*job.rules().requires).collect();
            let heads = sets
                .into_iter()
                .filter_map(|requires| Some((self.board.head(requires)?, requires.to_vec())));
            offers.extend(heads);
        }
        while let Some((position, requires)) = offers.pop_first() {
            match self.board.head(&requires) {
                None => continue,
                // The set's first job was granted to a runner that waited for another set.
                Some(head) if head != position => {
                    offers.insert(head, requires);
                    continue;
                }
                Some(_) => {}
            }
            let Some(waiter) = self.waiters.able(&requires) else { continue };
            self.grant_to(waiter.runner, &waiter.capabilities, waiter.reply);
            offers.insert(position, requires);
        }
        // Grants queue no jobs.
        self.record.note(&mut self.board);
    }

    /// The value of a successful operation. Otherwise the turn fails, and the board is ahead of the
    /// file.
    fn kept<T>(&mut self, result: Result<T, StoreError>) -> Option<T> {
        result
            .map_err(|error| {
                // Logged only once per outage, because the log may be on the same disk.
                if self.retry.is_none() {
                    tracing::error!(%error, "a change of leases could not be written");
                }
                self.fails(match error.is_no_space() {
                    true => Trouble::NoSpace,
                    false => Trouble::WritesFail,
                });
            })
            .ok()
    }

    fn fails(&mut self, trouble: Trouble) {
        self.failed = true;
        self.retry = Some(self.clock().after(RELOAD));
        self.shared.set_trouble(Some(trouble));
    }

    /// Returns the jobs of grants that no runner heard of.
    fn finish(&mut self) -> Vec<String> {
        if !self.failed && self.retry.is_some_and(|at| at <= self.clock().now()) {
            let touched = self.store.touch();
            self.wrote |= self.kept(touched).is_some();
        }
        if !self.failed {
            let committed = self.store.commit();
            self.secrets_went |= self.kept(committed).unwrap_or_default();
        }
        let wrote = mem::take(&mut self.wrote);
        if wrote && !self.failed && self.retry.take().is_some() {
            self.shared.set_trouble(None);
            tracing::info!("changes of leases are written again");
        }
        if self.failed {
            self.reload();
            for answer in self.answers.drain(..) {
                match answer {
                    Answer::Done(done) => done(false),
                    Answer::Granted(reply, _) => {
                        let _ = reply.send(Err(ServiceError::Failed));
                    }
                }
            }
            self.publish();
            return Vec::new();
        }
        self.publish();
        let entered = mem::take(&mut self.entered);
        self.shared.audit.entered(&entered, &self.board);
        let jobs: BTreeSet<&str> = entered.iter().map(|event| &*event.job.0).collect();
        self.shared.followers.tell(jobs);
        let mut unheard = Vec::new();
        for answer in self.answers.drain(..) {
            match answer {
                Answer::Done(done) => done(true),
                Answer::Granted(reply, leased) => {
                    if let Err(Ok(Some(leased))) = reply.send(Ok(Some(*leased))) {
                        unheard.push(leased.job_id);
                    }
                }
            }
        }
        unheard
    }

    /// Publishes the values that can be read without asking. This comes before the answers, so that
    /// they are not older than an answer.
    fn publish(&self) {
        let wake = self.board.next_wake().unwrap_or(u64::MAX);
        self.shared.next_wake.store(wake, Ordering::Release);
        self.shared.waiting.store(self.waiters.len(), Ordering::Relaxed);
    }

    /// Rebuilds the board from the file: changes that could not be written have not happened.
    fn reload(&mut self) {
        self.record = Record::default();
        self.entered.clear();
        match load(&mut self.store, &self.shared) {
            Ok((board, runs, schedules)) => {
                (self.board, self.runs, self.schedules) = (board, runs, schedules);
                (self.failed, self.offer_all) = (false, true);
            }
            Err(error) => {
                self.fails(Trouble::WritesFail);
                match error {
                    LoadError::Store(error) => tracing::error!(%error, "leases are not read"),
                    LoadError::Restore(error) => tracing::error!(%error, "leases are not read"),
                }
            }
        }
    }

    fn forget(&mut self) {
        for _ in 0..FORGET {
            if self.runs.ended.len() <= self.keep_runs {
                return;
            }
            let Some((_, run)) = self.runs.ended.pop_first() else { return };
            self.board.forget(&run.0);
            self.record.forgotten.push(run.0);
            let shared = self.shared.clone();
            self.answers.push(Answer::Done(Box::new(move |written| {
                if written {
                    shared.forgotten.notify_one();
                }
            })));
        }
    }

    pub fn cancel(&mut self, job: &str) -> ServiceResult<JobState> {
        Ok(self.board.cancel(job, self.now)?.into())
    }

    pub fn cancel_run(&mut self, run: &str) -> ServiceResult<()> {
        self.board.cancel_run(run, self.now)?;
        Ok(())
    }

    pub fn revoke(&mut self, job: &str) -> ServiceResult<JobState> {
        Ok(self.board.revoke(job, self.now)?.into())
    }

    pub fn issue_token(&mut self, request: TokenRequest) -> ServiceResult<NewToken> {
        let runner = RunnerId(request.runner_id);
        if let Some(silent) = self.silence(&runner).filter(|_| !request.replace) {
            return Err(ServiceError::NameInUse(silent / 1_000));
        }
        if self.shared.tokens.len() >= MAX_TOKENS {
            return Err(ServiceError::Full);
        }
        let token = new_secret("cowboy_runner")?;
        let hash = token_hash(token.as_bytes());
        self.set_token(runner.clone(), Some((hash, self.now)));
        Ok(NewToken { runner_id: runner.0, token_id: token_id(&hash), token })
    }

    /// How long a runner has been silent, in milliseconds, if it counts as being at work: that is,
    /// for the duration of a lease after its last request.
    fn silence(&self, runner: &RunnerId) -> Option<u64> {
        if self.waiters.has(runner) {
            return Some(0);
        }
        let silent = self.now.saturating_sub(self.shared.tokens.seen(runner)?);
        let ttl = self.shared.config.lease_ttl_seconds.saturating_mul(1_000);
        (silent < ttl).then_some(silent)
    }

    pub fn revoke_token(&mut self, runner: RunnerId, id: Option<&str>) -> ServiceResult<Token> {
        let made = self.store.token(&runner.0).map_err(|error| self.not_read(&error))?;
        let (made, hash) = made.ok_or(Refusal::NotFound)?;
        if id.is_some_and(|id| id != token_id(&hash)) {
            return Err(Refusal::NotFound.into());
        }
        self.set_token(runner.clone(), None);
        self.runners.forget(&runner);
        Ok(Token { runner_id: runner.0, created_at: time(made) })
    }

    pub fn runners(&self) -> Vec<RunnerSummary> {
        let known = self.runners.all().map(|(runner, capabilities, asked_at)| RunnerSummary {
            runner_id: runner.0.clone(),
            capabilities: capabilities.iter().cloned().collect(),
            asked_at: time(asked_at),
            seen_at: time(self.shared.tokens.seen(runner).unwrap_or(asked_at).max(asked_at)),
            waits: self.waiters.has(runner),
            job: None,
        });
        known.collect()
    }

    /// The reason why a job is not granted yet, if it does not wait for another job.
    pub fn why_queued(&self, job: &str) -> Option<String> {
        if let Some((group, first)) = self.board.before(job) {
            let first = match first {
                Member::Job(job) => &job.0,
                Member::Run(run) => &run.0,
            };
            return Some(format!("{first} has the turn of concurrency group {group}"));
        }
        let job = self.board.job(job).filter(|job| job.position().is_some())?;
        let seen = |runner: &RunnerId| self.shared.tokens.seen(runner);
        Some(self.runners.why_queued(&job.rules().requires, self.now, seen))
    }

    pub fn counts(&self) -> Counts {
        let states = self.board.states().iter().filter(|(_, count)| **count > 0);
        let states = states.map(|(state, count)| (state.to_string(), *count as u64)).collect();
        Counts { states, queued: self.board.queued() as u64 }
    }

    /// Sets or removes a runner's token once the change is written. A waiting request with the
    /// previous token is answered without a grant.
    fn set_token(&mut self, runner: RunnerId, made: Option<(Hash, u64)>) {
        if let Some(before) = self.waiters.of(&runner) {
            self.answer(before.reply, Ok(None));
        }
        self.record.token = Some(TokenRow { runner: runner.0.clone(), made });
        let shared = self.shared.clone();
        self.answers.push(Answer::Done(Box::new(move |written| {
            if written {
                shared.tokens.set(runner, made.map(|(hash, _)| hash), 0);
            }
        })));
    }

    pub fn forgotten(&mut self, after: &str, limit: usize) -> ServiceResult<Vec<String>> {
        self.store.forgotten(after, limit).map_err(|error| self.not_read(&error))
    }

    pub fn swept(&mut self, runs: Vec<String>) -> ServiceResult<()> {
        self.record.swept = runs;
        Ok(())
    }
}

fn load(
    store: &mut Store,
    shared: &ServiceShared,
) -> Result<(Board, Runs, Vec<Trigger>), LoadError> {
    let kept = store.load()?;
    let board = Board::restore(shared.config, kept.jobs).map_err(LoadError::Restore)?;
    let mut runs = Runs::default();
    for (number, run) in kept.runs {
        let open =
            board.run(&run).map_or(0, |jobs| jobs.filter(|job| !job.state().is_terminal()).count());
        runs.add(number, RunId(run), open);
    }
    Ok((board, runs, store.triggers()?))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers under texts are JSON")
}

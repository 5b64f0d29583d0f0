//! The owner of all leases: one thread with the board and the file, reached through one channel.
//!
//! Messages that arrive while the disk is busy share the next turn: they are applied to the board
//! one after the other, and their changes are one transaction. After one wait for the disk all of
//! them are answered. A message that the board refuses has changed nothing. If the transaction
//! fails, the whole turn has not happened: the board is rebuilt from the file, and all its messages
//! fail.
//!
//! Waiting runners are kept here ([`waiting`]); a queued job goes to the first one that can do it
//! and is still connected. Dropping the thread's [`Owner`] is like a kill: nothing is lost that was
//! acknowledged.

mod audit;
mod cleaner;
mod core;
mod follow;
mod runners;
mod schedules;
mod spec;
#[cfg(test)]
mod tests;
mod waiting;

use self::{
    audit::Audit,
    cleaner::Cleaner,
    core::{Core, ServiceResult},
    follow::Followers,
};
use super::{
    check::{self, Fault},
    clock::Clock,
    files::AttemptPlace,
    messages::{
        AckLease, CancelAck, Complete, EndReason, Heartbeat, JobState, LeaseGranted, LeaseRequest,
        MAX_SCHEDULES, NewRun, NewToken, RunnerSummary, Token, TokenRequest, Unhealthy as Trouble,
    },
    store::{Reader, Store, StoreError},
    tokens::{NoRandomness, Tokens},
};
use crate::machine::{Beat, Config, ConfigError, Refusal, RestoreError, RunnerId};
use std::{
    collections::BTreeMap,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};
use tokio::{
    runtime,
    sync::{Notify, mpsc, oneshot, watch},
    time::timeout,
};

const WAITING_MESSAGES: usize = 1_024;
const TOGETHER: usize = 128;
/// How long a message waits for a place in the queue.
const PATIENCE: Duration = Duration::from_secs(5);

type Reply<T> = oneshot::Sender<Result<T, ServiceError>>;
/// The handler of a message, which runs in its turn.
type Command = Box<dyn FnOnce(&mut Core) + Send>;

/// The reason why a message is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("a runner of this name made a request {0} s ago")]
    NameInUse(u64),
    #[error("there are already {MAX_SCHEDULES} schedules, the maximum")]
    SchedulesFull,
    #[error("the server has no chain")]
    NoChain,
    #[error("the chain has not begun yet")]
    ChainBegins,
    #[error("too many messages are waiting")]
    Full,
    #[error("the server is stopping")]
    Stopping,
    /// The changes could not be written; the log has the reason.
    #[error("internal error")]
    Failed,
}

/// The reason why the service cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{path}: {error}; move the file away to start over")]
    Restore { path: std::path::PathBuf, error: RestoreError },
    #[error("no thread for the leases: {0}")]
    Thread(#[from] io::Error),
}

#[derive(Clone)]
pub(super) struct Service {
    commands: mpsc::Sender<Command>,
    shared: Arc<ServiceShared>,
}

struct ServiceShared {
    config: Config,
    clock: Clock,
    tokens: Tokens,
    reader: Reader,
    followers: Followers,
    audit: Audit,
    /// When time changes something next, in milliseconds; `u64::MAX` for never.
    next_wake: AtomicU64,
    waiting: AtomicUsize,
    forgotten: Notify,
    trouble: Mutex<Option<Trouble>>,
    chain: Mutex<ChainHead>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ChainHead {
    #[default]
    None,
    Unknown,
    At(u64),
}

impl ServiceShared {
    fn new(config: Config, clock: Clock, reader: Reader) -> Self {
        Self {
            config,
            clock,
            tokens: Tokens::default(),
            reader,
            followers: Followers::default(),
            audit: Audit::default(),
            next_wake: AtomicU64::new(u64::MAX),
            waiting: AtomicUsize::new(0),
            forgotten: Notify::new(),
            trouble: Mutex::default(),
            chain: Mutex::default(),
        }
    }

    fn set_trouble(&self, trouble: Option<Trouble>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Active {
    pub place: AttemptPlace,
    /// Time left to stop in milliseconds, and the reason, if a cancel was requested.
    pub cancel: Option<(u64, EndReason)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// By the name of their state; states without jobs are left out.
    pub states: BTreeMap<String, u64>,
    pub queued: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServiceEnd {
    Running,
    Closing,
    /// Ends after answering the messages received so far.
    Stopped,
    Killed,
}

/// The handle of the owner's thread. Without the thread there are no answers.
#[derive(Debug)]
pub(super) struct Owner {
    end: watch::Sender<ServiceEnd>,
    ended: watch::Receiver<Option<String>>,
}

impl Owner {
    /// Answers all waiting runners, and ends waits for work for good.
    pub fn close(&self) {
        self.end.send_replace(ServiceEnd::Closing);
    }

    /// Answers the messages received so far, and ends the thread. Returns whether it ended within
    /// `grace`.
    pub async fn stop(self, grace: Duration) -> bool {
        self.end.send_replace(ServiceEnd::Stopped);
        timeout(grace, self.ended()).await.is_ok()
    }

    /// Ends the thread without further answers, and waits for its end.
    pub async fn killed(self) {
        self.end.send_replace(ServiceEnd::Killed);
        // It still completes a transaction in progress.
        self.ended().await;
    }

    pub async fn ended(&self) -> String {
        let mut ended = self.ended.clone();
        let why = ended.wait_for(Option::is_some).await;
        why.ok().and_then(|why| why.clone()).unwrap_or_default()
    }
}

/// Starts the owner of the file at `path`, and lets the clock's current time take effect: leases
/// that expired while the server was down are lost.
pub(super) fn start(
    path: &Path,
    config: Config,
    keep_runs: usize,
    clock: Clock,
) -> Result<(Service, Owner), StartError> {
    config.check()?;
    let store = Store::open(path)?;
    let shared = Arc::new(ServiceShared::new(config, clock, store.reader()?));
    let now = shared.clock.now();
    for (runner, hash) in store.tokens()? {
        // The token may have been in use until the server ended.
        shared.tokens.set(runner, Some(hash), now);
    }
    let mut core =
        Core::new(store, keep_runs, shared.clone()).map_err(|error| error.into_start(path))?;
    core.turn(std::iter::empty());
    let cleaner = Cleaner::new(path, core.clock().clone());
    let (commands, waiting) = mpsc::channel(WAITING_MESSAGES);
    let (end, told) = watch::channel(ServiceEnd::Running);
    let (done, ended) = watch::channel(None);
    let runtime = runtime::Builder::new_current_thread().enable_time().build()?;
    thread::Builder::new().name("leases".to_owned()).spawn(move || {
        // Dropping the cleaner waits for it, because the file may be reopened once the end is
        // reported.
        let turns = || runtime.block_on(run(core, cleaner, waiting, told));
        let why = match catch_unwind(AssertUnwindSafe(turns)) {
            Ok(()) => "it was stopped".to_owned(),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                format!("a panic: {}", text.unwrap_or("without a text"))
            }
        };
        done.send_replace(Some(why));
    })?;
    Ok((Service { commands, shared }, Owner { end, ended }))
}

async fn run(
    mut core: Core,
    mut cleaner: Cleaner,
    mut commands: mpsc::Receiver<Command>,
    mut told: watch::Receiver<ServiceEnd>,
) {
    let mut together = Vec::with_capacity(TOGETHER);
    loop {
        let clock = core.clock().clone();
        let wake = core.next_wake();
        let time = async {
            match wake {
                Some(at) => clock.reaches(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = told.changed() => {
                let end = *told.borrow_and_update();
                match end {
                    // The owner's handle was dropped, which is like a kill.
                    _ if changed.is_err() => return,
                    ServiceEnd::Killed => return,
                    ServiceEnd::Stopped => break,
                    ServiceEnd::Closing => core.close(),
                    ServiceEnd::Running => {}
                }
            }
            // Cleaning comes before messages, because those may never pause.
            () = cleaner.work() => continue,
            taken = commands.recv_many(&mut together, TOGETHER) => {
                if taken == 0 {
                    return;
                }
            }
            () = time => {}
        }
        core.turn(together.drain(..));
        if core.secrets_went() {
            cleaner.soon();
        }
    }
    core.close();
    commands.close();
    while commands.recv_many(&mut together, TOGETHER).await > 0 {
        core.turn(together.drain(..));
    }
    core.turn(std::iter::empty());
}

impl Service {
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    pub fn holder(&self, token: &[u8]) -> Option<RunnerId> {
        self.shared.tokens.holder(token, self.shared.clock.now())
    }

    pub fn trouble(&self) -> Option<Trouble> {
        if self.commands.is_closed() {
            return Some(Trouble::Stopped);
        }
        *self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    pub fn unauthorized(&self, path: &str) {
        self.shared.audit.unauthorized(path);
    }

    /// The metrics in Prometheus' format.
    pub async fn metrics(&self) -> ServiceResult<String> {
        let counts = self.counts().await?;
        Ok(self.shared.audit.metrics(&counts, self.waiting() as u64))
    }

    pub fn follow(&self, job: &str) -> watch::Receiver<()> {
        self.shared.followers.follow(job)
    }

    /// Resolves when runs were forgotten since the last call.
    pub async fn runs_forgotten(&self) {
        self.shared.forgotten.notified().await;
    }

    /// Reads stored data on a blocking thread, after writing the changes that are due by time.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> ServiceResult<T> {
        let shared = self.shared.clone();
        if shared.clock.now() >= shared.next_wake.load(Ordering::Acquire) {
            // A turn applies the effects of time.
            self.ask(|_| Ok(())).await?;
        }
        let read = tokio::task::spawn_blocking(move || read(&shared.reader));
        let failed = |error: &dyn fmt::Display| {
            tracing::error!(%error, "what is kept of leases could not be read");
            ServiceError::Failed
        };
        read.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
    }

    /// Runs `act` in the owner's thread and returns its outcome once its changes are written.
    async fn ask<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Core) -> ServiceResult<T> + Send + 'static,
    ) -> ServiceResult<T> {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(move |core| {
            let outcome = core.act(act);
            core.answer(reply, outcome);
        }))
        .await?;
        // When the thread ends, it drops the messages that it does not answer.
        answer.await.unwrap_or(Err(ServiceError::Stopping))
    }

    async fn send(&self, command: Command) -> ServiceResult<()> {
        self.commands.send_timeout(command, PATIENCE).await.map_err(|error| match error {
            mpsc::error::SendTimeoutError::Timeout(_) => ServiceError::Full,
            mpsc::error::SendTimeoutError::Closed(_) => ServiceError::Stopping,
        })
    }

    /// Submits a run: all of its jobs or none. Returns its id.
    pub async fn submit(&self, run: NewRun) -> ServiceResult<String> {
        check::new_run(&run)?;
        self.ask(move |core| core.submit(run)).await
    }

    /// Asks for work and waits as long as the request says.
    pub async fn lease(
        &self,
        runner: RunnerId,
        request: LeaseRequest,
    ) -> ServiceResult<Option<LeaseGranted>> {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(move |core| core.lease(runner, request, reply))).await?;
        answer.await.unwrap_or(Err(ServiceError::Stopping))
    }

    pub async fn ack(&self, runner: RunnerId, message: AckLease) -> ServiceResult<()> {
        self.ask(move |core| core.ack(&runner, &message)).await
    }

    /// Renews a lease. Returns its new duration, and whether to stop.
    pub async fn heartbeat(&self, runner: RunnerId, message: Heartbeat) -> ServiceResult<Beat> {
        self.ask(move |core| core.heartbeat(&runner, message)).await
    }

    pub async fn complete(&self, runner: RunnerId, message: Complete) -> ServiceResult<()> {
        self.ask(move |core| core.complete(&runner, message)).await
    }

    pub async fn cancel_ack(&self, runner: RunnerId, message: CancelAck) -> ServiceResult<()> {
        self.ask(move |core| core.cancel_ack(&runner, message)).await
    }

    pub async fn active(&self, runner: RunnerId, lease_id: String) -> ServiceResult<Active> {
        self.ask(move |core| core.active(&runner, &lease_id)).await
    }

    /// Runs `act` in the owner's thread if the lease is active, so that the lease cannot change in
    /// the meantime. `act` must be short and never wait, because all other messages wait for it.
    pub async fn while_active<T: Send + 'static>(
        &self,
        runner: RunnerId,
        lease_id: String,
        act: impl FnOnce(&AttemptPlace) -> T + Send + 'static,
    ) -> ServiceResult<T> {
        self.ask(move |core| core.active(&runner, &lease_id).map(|active| act(&active.place))).await
    }

    pub async fn cancel(&self, job: String) -> ServiceResult<JobState> {
        self.ask(move |core| core.cancel(&job)).await
    }

    pub async fn cancel_run(&self, run: String) -> ServiceResult<()> {
        self.ask(move |core| core.cancel_run(&run)).await
    }

    pub async fn revoke(&self, job: String) -> ServiceResult<JobState> {
        self.ask(move |core| core.revoke(&job)).await
    }

    /// Issues a runner's token and invalidates its previous one. While a runner of this name is at
    /// work, this is refused unless it is to be replaced.
    pub async fn issue_token(&self, request: TokenRequest) -> ServiceResult<NewToken> {
        check::runner_id(&request.runner_id)?;
        self.ask(move |core| core.issue_token(request)).await
    }

    /// Invalidates a runner's token; if `id` is given, only that token.
    pub async fn revoke_token(&self, runner: RunnerId, id: Option<String>) -> ServiceResult<Token> {
        self.ask(move |core| core.revoke_token(runner, id.as_deref())).await
    }

    /// Sorted by id, without their jobs.
    pub async fn runners(&self) -> ServiceResult<Vec<RunnerSummary>> {
        self.ask(|core| Ok(core.runners())).await
    }

    pub async fn why_queued(&self, job: String) -> ServiceResult<Option<String>> {
        self.ask(move |core| Ok(core.why_queued(&job))).await
    }

    pub async fn counts(&self) -> ServiceResult<Counts> {
        self.ask(|core| Ok(core.counts())).await
    }

    /// At most `limit` of the forgotten runs whose files still exist, sorted by id, starting after
    /// `after`.
    pub async fn forgotten(&self, after: String, limit: usize) -> ServiceResult<Vec<String>> {
        self.ask(move |core| core.forgotten(&after, limit)).await
    }

    /// The files of these runs have been removed.
    pub async fn swept(&self, runs: Vec<String>) -> ServiceResult<()> {
        self.ask(move |core| core.swept(runs)).await
    }
}

impl From<NoRandomness> for ServiceError {
    fn from(error: NoRandomness) -> Self {
        tracing::error!(%error, "a lease, a run or a token could not be made");
        Self::Failed
    }
}

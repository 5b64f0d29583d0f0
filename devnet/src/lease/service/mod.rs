//! The owner of all leases: one thread with the board and the file, asked over one channel.
//!
//! Messages that have come while the disk was busy have their turn together: one after the other
//! they are applied to the board, and what they change is one transaction. The disk is waited for
//! once, and then all are answered. What the board refuses has changed nothing. If the transaction
//! fails, nothing of the turn has happened: the board is made anew from the file, and everybody in
//! it is told so.
//!
//! Runners that wait for work are kept here ([`waiting`]); a job that is queued goes to the first
//! that is able and there to hear of it. Dropping the thread's [`Owner`] is like a kill: nothing is
//! lost that was answered.

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
    core::{Core, Outcome},
    follow::Followers,
    runners::Known,
};
use super::{
    check::{self, Fault},
    clock::Clock,
    files::Place,
    messages::{
        AckLease, CancelAck, Complete, EndReason, Heartbeat, JobState, LeaseGranted, LeaseRequest,
        MAX_SCHEDULES, NewRun, NewToken, Token, TokenRequest,
    },
    store::{Reader, Store, StoreError},
    tokens::{NoRandomness, Tokens},
};
use cowboy_engine::lease::{Beat, Config, ConfigError, Refusal, RestoreError, RunnerId};
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

/// Messages that wait for their turn.
const WAITING_MESSAGES: usize = 1_024;
/// Messages that are taken together at most.
const TOGETHER: usize = 128;
/// How long a message waits for a place among those that wait.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where an answer goes.
type Reply<T> = oneshot::Sender<Result<T, ServiceError>>;
/// What is done when a message's turn comes.
type Command = Box<dyn FnOnce(&mut Core) + Send>;

/// Why a message is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The rules of leases.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It is not what it should be.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A runner of this name made its last request this many seconds ago.
    #[error("a runner of this name was heard of {0} s ago")]
    NameInUse(u64),
    /// There are as many schedules as there may be.
    #[error("there are {MAX_SCHEDULES} schedules, as many as there may be")]
    SchedulesFull,
    /// The server has no chain.
    #[error("the server has no chain")]
    NoChain,
    /// How far the server's chain is, is not known yet.
    #[error("the chain has not begun yet")]
    ChainBegins,
    /// Too much is waiting.
    #[error("too much is waiting")]
    Full,
    /// The service ends.
    #[error("the server stops")]
    Stopping,
    /// What it changes could not be written; the log says why.
    #[error("a fault of the server")]
    Failed,
}

/// Why changes are not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The disk is full.
    NoSpace,
    /// They cannot be written for another reason, which the log says.
    WritesFail,
    /// The owner of the leases has ended.
    Stopped,
}

/// Why the service cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Leases could not be granted.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What is kept makes no board.
    #[error("{path}: {error}; move the file away to start anew")]
    Restore {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        error: RestoreError,
    },
    /// The system gives no thread.
    #[error("no thread for the leases: {0}")]
    Thread(#[from] io::Error),
}

/// Asks the owner of all leases. Clones ask the same.
#[derive(Clone)]
pub(super) struct Service {
    commands: mpsc::Sender<Command>,
    shared: Arc<Shared>,
}

/// What is known without asking.
#[derive(Debug)]
struct Shared {
    config: Config,
    clock: Clock,
    tokens: Tokens,
    reader: Reader,
    followers: Followers,
    audit: Audit,
    /// When time changes something by itself; `u64::MAX`: never.
    next_wake: AtomicU64,
    waiting: AtomicUsize,
    /// Told when runs are forgotten.
    forgotten: Notify,
    /// Why the last change could not be written.
    trouble: Mutex<Option<Trouble>>,
    /// How far the chain is whose timers schedules go by.
    chain: Mutex<ChainHead>,
}

/// How far a server's chain is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ChainHead {
    /// There is no chain.
    #[default]
    None,
    /// That is not known yet.
    Unknown,
    /// At this height.
    At(u64),
}

impl Shared {
    fn set_trouble(&self, trouble: Option<Trouble>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}

/// What the bearer of an active lease may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Active {
    /// Where it may write.
    pub place: Place,
    /// The milliseconds it has to stop, and why, if it is to.
    pub cancel: Option<(u64, EndReason)>,
}

/// How many jobs there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// In each state, by its name; states that no job is in are left out.
    pub states: BTreeMap<String, u64>,
    /// To be granted.
    pub queued: u64,
}

/// How the owner's thread is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Not yet.
    Running,
    /// Nobody waits for work any more.
    Closing,
    /// Once what has come is answered.
    Stopped,
    /// At once.
    Killed,
}

/// The owner's thread. Without it there is no answer.
#[derive(Debug)]
pub(super) struct Owner {
    end: watch::Sender<End>,
    /// Why it has ended, once it has.
    ended: watch::Receiver<Option<String>>,
}

impl Owner {
    /// Answers whoever waits for work: from now on nobody waits.
    pub fn close(&self) {
        self.end.send_replace(End::Closing);
    }

    /// Answers what has come, and ends the thread. Whether it ended within `grace`.
    pub async fn stop(self, grace: Duration) -> bool {
        self.end.send_replace(End::Stopped);
        timeout(grace, self.ended()).await.is_ok()
    }

    /// Ends the thread without an answer to anybody, and waits until it has.
    pub async fn killed(self) {
        self.end.send_replace(End::Killed);
        // It ends after the transaction that it writes.
        self.ended().await;
    }

    /// Resolves once the thread has ended, with the reason.
    pub async fn ended(&self) -> String {
        let mut ended = self.ended.clone();
        let why = ended.wait_for(Option::is_some).await;
        why.ok().and_then(|why| why.clone()).unwrap_or_default()
    }
}

/// Starts the owner of what `path` has, with the first moment of its clock: leases that have run
/// out since are lost.
pub(super) fn start(
    path: &Path,
    config: Config,
    keep_runs: usize,
    clock: Clock,
) -> Result<(Service, Owner), StartError> {
    config.check()?;
    let store = Store::open(path)?;
    let shared = Arc::new(Shared {
        config,
        clock,
        tokens: Tokens::default(),
        reader: store.reader()?,
        followers: Followers::default(),
        audit: Audit::default(),
        next_wake: AtomicU64::new(u64::MAX),
        waiting: AtomicUsize::new(0),
        forgotten: Notify::new(),
        trouble: Mutex::default(),
        chain: Mutex::default(),
    });
    let now = shared.clock.now();
    for (runner, hash) in store.tokens()? {
        // It may have been shown until the server ended.
        shared.tokens.set(runner, Some(hash), now);
    }
    let mut core =
        Core::new(store, keep_runs, shared.clone()).map_err(|error| error.into_start(path))?;
    core.turn(std::iter::empty());
    let cleaner = Cleaner::new(path, core.clock().clone());
    let (commands, waiting) = mpsc::channel(WAITING_MESSAGES);
    let (end, told) = watch::channel(End::Running);
    let (done, ended) = watch::channel(None);
    let runtime = runtime::Builder::new_current_thread().enable_time().build()?;
    thread::Builder::new().name("leases".to_owned()).spawn(move || {
        // Waits for what still cleans: the file may be opened once the end is told.
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

/// Takes turns until the end.
async fn run(
    mut core: Core,
    mut cleaner: Cleaner,
    mut commands: mpsc::Receiver<Command>,
    mut told: watch::Receiver<End>,
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
                    // The owner is gone: as if killed.
                    _ if changed.is_err() => return,
                    End::Killed => return,
                    End::Stopped => break,
                    End::Closing => core.close(),
                    End::Running => {}
                }
            }
            // Before messages: there may always be one.
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
    /// What leases are granted with.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// The time that leases are measured by.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Whose token this is.
    pub fn holder(&self, token: &[u8]) -> Option<RunnerId> {
        self.shared.tokens.holder(token, self.shared.clock.now())
    }

    /// Why changes are not accepted at present.
    pub fn trouble(&self) -> Option<Trouble> {
        if self.commands.is_closed() {
            return Some(Trouble::Stopped);
        }
        *self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many runners wait for work.
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    /// A request to this path had no valid token.
    pub fn unauthorized(&self, path: &str) {
        self.shared.audit.unauthorized(path);
    }

    /// The metrics, as Prometheus reads them.
    pub async fn metrics(&self) -> Result<String, ServiceError> {
        let counts = self.counts().await?;
        Ok(self.shared.audit.metrics(&counts, self.waiting() as u64))
    }

    /// Changes whenever the job enters a state from now on.
    pub fn follow(&self, job: &str) -> watch::Receiver<()> {
        self.shared.followers.follow(job)
    }

    /// Resolves when runs were forgotten since it did last.
    pub async fn runs_forgotten(&self) {
        self.shared.forgotten.notified().await;
    }

    /// Reads what is kept, where it may block; first whatever time has changed is written.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let shared = self.shared.clone();
        if shared.clock.now() >= shared.next_wake.load(Ordering::Acquire) {
            // A turn does what time is due to do.
            self.ask(|_| Ok(())).await?;
        }
        let read = tokio::task::spawn_blocking(move || read(&shared.reader));
        let failed = |error: &dyn fmt::Display| {
            tracing::error!(%error, "what is kept of leases could not be read");
            ServiceError::Failed
        };
        read.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
    }

    /// Does something in the owner's thread and waits for its outcome, which is told once all that
    /// it changed is written.
    async fn ask<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Core) -> Outcome<T> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(move |core| {
            let outcome = core.act(act);
            core.answer(reply, outcome);
        }))
        .await?;
        // The thread drops what it does not answer when it ends.
        answer.await.unwrap_or(Err(ServiceError::Stopping))
    }

    async fn send(&self, command: Command) -> Result<(), ServiceError> {
        self.commands.send_timeout(command, PATIENCE).await.map_err(|error| match error {
            mpsc::error::SendTimeoutError::Timeout(_) => ServiceError::Full,
            mpsc::error::SendTimeoutError::Closed(_) => ServiceError::Stopping,
        })
    }

    /// Takes a run: all of its jobs or none. Its id.
    pub async fn submit(&self, run: NewRun) -> Result<String, ServiceError> {
        check::new_run(&run)?;
        self.ask(move |core| core.submit(run)).await
    }

    /// Asks for work, and waits for it as long as the request says.
    pub async fn lease(
        &self,
        runner: RunnerId,
        request: LeaseRequest,
    ) -> Result<Option<LeaseGranted>, ServiceError> {
        let (reply, answer) = oneshot::channel();
        self.send(Box::new(move |core| core.lease(runner, request, reply))).await?;
        answer.await.unwrap_or(Err(ServiceError::Stopping))
    }

    /// The holder has accepted the lease.
    pub async fn ack(&self, runner: RunnerId, message: AckLease) -> Result<(), ServiceError> {
        self.ask(move |core| core.ack(&runner, &message)).await
    }

    /// The holder lives. The answer: how long it may go on, and with what.
    pub async fn heartbeat(
        &self,
        runner: RunnerId,
        message: Heartbeat,
    ) -> Result<Beat, ServiceError> {
        self.ask(move |core| core.heartbeat(&runner, message)).await
    }

    /// The holder is done.
    pub async fn complete(&self, runner: RunnerId, message: Complete) -> Result<(), ServiceError> {
        self.ask(move |core| core.complete(&runner, message)).await
    }

    /// The holder has stopped.
    pub async fn cancel_ack(
        &self,
        runner: RunnerId,
        message: CancelAck,
    ) -> Result<(), ServiceError> {
        self.ask(move |core| core.cancel_ack(&runner, message)).await
    }

    /// What the bearer of an active lease may do.
    pub async fn active(&self, runner: RunnerId, lease_id: String) -> Result<Active, ServiceError> {
        self.ask(move |core| core.active(&runner, &lease_id)).await
    }

    /// Does something for the bearer of a lease if it is active, in the owner's thread: nothing
    /// happens to the lease meanwhile, and everybody waits. Short, that is, and without waiting.
    pub async fn while_active<T: Send + 'static>(
        &self,
        runner: RunnerId,
        lease_id: String,
        act: impl FnOnce(&Place) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        self.ask(move |core| core.active(&runner, &lease_id).map(|active| act(&active.place))).await
    }

    /// Somebody wants a job stopped. The state it is in then.
    pub async fn cancel(&self, job: String) -> Result<JobState, ServiceError> {
        self.ask(move |core| core.cancel(&job)).await
    }

    /// Somebody wants all jobs of a run stopped.
    pub async fn cancel_run(&self, run: String) -> Result<(), ServiceError> {
        self.ask(move |core| core.cancel_run(&run)).await
    }

    /// Somebody takes a job's lease back. The state the job is in then.
    pub async fn revoke(&self, job: String) -> Result<JobState, ServiceError> {
        self.ask(move |core| core.revoke(&job)).await
    }

    /// Makes a runner's token; what it had before is good no more. Refused while a runner of this
    /// name is at work, unless it is to be replaced.
    pub async fn issue_token(&self, request: TokenRequest) -> Result<NewToken, ServiceError> {
        check::runner_id(&request.runner_id)?;
        self.ask(move |core| core.issue_token(request)).await
    }

    /// Makes a runner's token good no more; where `id` is given, only that one.
    pub async fn revoke_token(
        &self,
        runner: RunnerId,
        id: Option<String>,
    ) -> Result<Token, ServiceError> {
        self.ask(move |core| core.revoke_token(runner, id.as_deref())).await
    }

    /// The runners that have asked for work, by id.
    pub async fn runners(&self) -> Result<Vec<Known>, ServiceError> {
        self.ask(|core| Ok(core.runners())).await
    }

    /// Why a job is not granted yet, where it is in the queue.
    pub async fn why_queued(&self, job: String) -> Result<Option<String>, ServiceError> {
        self.ask(move |core| Ok(core.why_queued(&job))).await
    }

    /// How many jobs there are.
    pub async fn counts(&self) -> Result<Counts, ServiceError> {
        self.ask(|core| Ok(core.counts())).await
    }

    /// Some of the runs that were forgotten, whose files are still to go: by id, those after
    /// `after`.
    pub async fn forgotten(
        &self,
        after: String,
        limit: usize,
    ) -> Result<Vec<String>, ServiceError> {
        self.ask(move |core| core.forgotten(&after, limit)).await
    }

    /// The files of these runs are gone.
    pub async fn swept(&self, runs: Vec<String>) -> Result<(), ServiceError> {
        self.ask(move |core| core.swept(runs)).await
    }
}

impl From<NoRandomness> for ServiceError {
    fn from(error: NoRandomness) -> Self {
        tracing::error!(%error, "a lease, a run or a token could not be made");
        Self::Failed
    }
}

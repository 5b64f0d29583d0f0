//! Runs pipelines of tasks ahead of the chain (spec speculation.md, "In a devnet").
//!
//! The agent is an account of the devnet and runs in its process. It has runners do the tasks'
//! work, makes their proofs, and brings both onto the chain. The machine of
//! [`cowboy_engine::speculation`] decides when a task may run and what is undone.
//!
//! ```text
//!   pipelines ─▶ ┌──────┐ ─ Execute ─▶ dispatch ──▶ runners, by way of validators' gateways
//!   outputs ───▶ │ core │ ─ Prove ───▶ provers
//!   proofs ────▶ └──────┘ ─ Send ────▶ sender ──▶ validators' mempools
//!   blocks ────────▲───────────────────┘
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `core` | state and decisions, over one machine |
//! | `run` | a pipeline that was accepted |
//! | `journal` | the latest events of the components |
//! | `chain_message` | messages to the chain about tasks |
//! | `sender` | sends them to the chain |
//! | `dispatch` | has runners do work |
//! | `prover` | makes proofs |
//! | `spans` | a trace for each pipeline |
//! | [`model`] | forecasts of a pipeline's time and waits, without running it |
//! | `store` | state that outlives the process |
//! | `view` | the API's answers |
//!
//! The core is called under one lock and never waits. Times are Unix ms of the machine's clock.
//! Nothing that the chain decides depends on them.

mod chain_message;
mod core;
mod dispatch;
mod journal;
pub mod model;
mod prover;
mod run;
mod sender;
mod spans;
mod store;
#[cfg(test)]
mod tests;
mod view;

pub use prover::process::{ARGUMENT as PROVER, serve as prove_for_parent};
pub use store::StoreError;

use self::{
    chain_message::ChainPace,
    core::{AgentAction, Core, Count},
    dispatch::{Dispatch, Work},
    prover::{Order, Provers},
    sender::{News, Sender},
    spans::{Spans, TaskStage},
    store::{Change, Store},
};
use crate::{
    chain::ledger::{self, ExecutedBlock, Ledger},
    speculation::metrics::Metrics,
    telemetry::{CollectorUrl, Exporter},
    topology::Options,
    types::{Text, TimeText},
    validator::{gateway::Gateway, node::Services},
};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::{EventKind, Scheme, State, Task},
    primitives::{Address, Hash, Height, SecretKey, keccak256},
    speculation::{Bonds, RollbackReason, TaskId},
};
use jiff::Timestamp;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    task::AbortHandle,
};

/// Length of a task's claim when its pipeline sets none, in ms; twice `claimBufferMs` if that is
/// longer.
const CLAIM_MS: u64 = 600_000;
/// Tasks that may be refused in a row before the rest wait for the next round.
const REFUSALS: usize = 64;
/// Maximum transactions in flight; half of what a mempool keeps for an account.
const WINDOW: usize = 32;
/// Maximum of `proof.workerThreads`.
const MAX_WORKERS: usize = 32;
const WRITE_PAUSE: Duration = Duration::from_millis(50);
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Longest sleep between two checks of the deadlines.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// The parameters of an agent; `options` and `bonds` are initial values.
pub struct AgentConfig {
    pub key: SecretKey,
    pub options: Options,
    pub scheme: Scheme,
    pub bonds: Bonds,
    pub proof_seed: [u8; 32],
    /// The program that becomes a prover when started with [`PROVER`]; without one, proofs are made
    /// in this process.
    pub prover: Option<PathBuf>,
    pub chain_id: u64,
    /// Nominal time between blocks.
    pub block_time: Duration,
    pub runners: BTreeMap<Address, String>,
    pub devnet: String,
    pub collector: Option<CollectorUrl>,
    /// The file of the state that outlives the process.
    pub path: PathBuf,
}

/// A devnet's agent. Cloning shares it.
#[derive(Clone)]
pub struct Agent(Arc<AgentInner>);

struct AgentInner {
    books: Mutex<Books>,
    dispatch: Dispatch,
    provers: Provers,
    store: Store,
    metrics: Metrics,
    runners: BTreeMap<Address, String>,
    block_ms: u64,
    doing: Mutex<BTreeMap<TaskId, Vec<(u32, AbortHandle)>>>,
    /// Held during a write, so that the later of two writes wins.
    writing: Mutex<()>,
    /// Set once no new work may start.
    closed: AtomicBool,
    /// Set when a panic has corrupted the books.
    broken: watch::Sender<bool>,
    /// Signals that the next deadline may have moved earlier.
    sooner: Notify,
    changed: Notify,
    told: watch::Sender<u64>,
    runtime: Handle,
}

/// Closes the agent on a panic while its books change. Create it after locking the books, so that
/// it closes the agent before the lock is released.
struct Guard<'a>(&'a AgentInner);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.closed.store(true, Ordering::Relaxed);
            self.0.broken.send_replace(true);
        }
    }
}

struct Books {
    core: Core,
    sender: Sender,
    resumed: bool,
    seen: Option<Height>,
}

impl Agent {
    /// Opens an agent with the state of an earlier process. Its tasks run on the calling runtime.
    pub fn open(config: AgentConfig) -> Result<Self, StoreError> {
        let AgentConfig { key, options, scheme, bonds, proof_seed, prover, .. } = config;
        let (chain_id, block_time) = (config.chain_id, config.block_time);
        let (runners, path) = (config.runners, config.path);
        let metrics = Metrics::new();
        let exporter = config.collector.map(|collector| {
            let resource = [
                ("service.name", "cowboyctl".to_owned()),
                ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
                ("service.instance.id", config.devnet),
            ];
            Exporter::start(&collector, &resource, "speculation", metrics.spans().clone())
        });
        let agent = key.address();
        // Secret: the salts and the proofs' blinding derive from it.
        let secret = keccak256(&[b"cowboy/agent-secret/v1", &key.to_bytes()]).0;
        let workers = options.config.worker_threads;
        let block_ms = u64::try_from(block_time.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut core = Core::new(agent, secret, options, block_ms, now());
        core.spans = Spans::new(chain_id, agent, exporter);
        let store = Store::open(&path, chain_id)?;
        store.load(&mut core, now())?;
        core.machine.tell_events();
        core.set_bonds(&bonds);
        let dispatch = Dispatch::new(chain_id, key.clone(), block_ms);
        let told = watch::Sender::new(core.journal.next());
        let books = Books { core, sender: Sender::new(key), resumed: false, seen: None };
        let inner = AgentInner {
            books: Mutex::new(books),
            dispatch,
            provers: Provers::new(scheme, proof_seed, &agent, prover, workers),
            store,
            metrics,
            runners,
            block_ms,
            doing: Mutex::default(),
            writing: Mutex::default(),
            closed: AtomicBool::new(false),
            broken: watch::Sender::new(false),
            sooner: Notify::new(),
            changed: Notify::new(),
            told,
            runtime: Handle::current(),
        };
        let agent = Self(Arc::new(inner));
        tokio::spawn(keep_time(agent.clone()));
        tokio::spawn(keep_books(agent.clone()));
        Ok(agent)
    }

    /// Adds a running validator: the agent reaches runners and the chain through it.
    pub fn joined(&self, name: &str, services: Services, gateway: Gateway) {
        let (state, blocks) = (services.ledger.head(), services.ledger.subscribe());
        let (agent, ledger) = (self.clone(), services.ledger.clone());
        // After missed blocks, the next one shows the gap.
        tokio::spawn(ledger::follow(blocks, move |block| agent.block(&ledger, block)));
        self.0.dispatch.joined(name, services, gateway);
        let resume = {
            let mut books = self.0.books.lock();
            !std::mem::replace(&mut books.resumed, true)
        };
        if resume {
            self.act(|core, now| core.resume(&state, now));
        }
    }

    pub fn left(&self, name: &str) {
        self.0.dispatch.left(name);
    }

    /// A validator has executed a block; only the first report of each height counts.
    fn block(&self, ledger: &Ledger, block: &ExecutedBlock) {
        let height = block.block.header.height;
        let (gap, news) = {
            let mut books = self.0.books.lock();
            let _guard = Guard(&self.0);
            if self.is_closed() || books.seen.is_some_and(|seen| seen >= height) {
                return;
            }
            let gap = books.seen.is_none_or(|seen| seen.next() != height);
            books.seen = Some(height);
            books.core.set_bonds(block.execution.state.bonds());
            let Books { core, sender, .. } = &mut *books;
            (gap, sender.block(core, block))
        };
        self.0.dispatch.stir();
        let made = block.execution.state.proposed_ms();
        self.act(|core, now| {
            core.seen(made, now);
            if gap {
                core.catch_up(&block.execution.state, now);
            }
            heed(core, news, now);
            core.book_missed(ledger, height, now);
            for event in &block.execution.events {
                match &event.kind {
                    EventKind::TaskCompleted(completed) => {
                        let id = &completed.task_id;
                        core.completed(id, output_on_chain(&block.execution.state, id), now);
                    }
                    EventKind::CommitmentResolved(resolved) => core.resolved(resolved, now),
                    _ => {}
                }
            }
            core.booked = height;
            core.advance(now);
        });
    }

    /// Resolves when a panic has corrupted the agent's books. The stored state is still good.
    pub async fn failed(&self) {
        // The sender lives as long as `self`.
        let _ = self.0.broken.subscribe().wait_for(|broken| *broken).await;
    }

    /// Stops all work and stores the state unless it is corrupt. Nothing new starts after that.
    pub async fn stop(&self) {
        self.0.closed.store(true, Ordering::Relaxed);
        for (_, handle) in std::mem::take(&mut *self.0.doing.lock()).into_values().flatten() {
            handle.abort();
        }
        self.0.provers.close();
        self.0.sooner.notify_one();
        self.0.changed.notify_one();
        let agent = self.clone();
        let written = tokio::task::spawn_blocking(move || agent.write()).await;
        if let Ok(Err(error)) = written {
            tracing::error!(%error, "the agent's state is not stored");
        }
        let exporter = self.0.books.lock().core.spans.stop();
        if let Some(exporter) = exporter {
            exporter.close().await;
        }
    }

    fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Relaxed)
    }

    /// Stores all changes. After an error they are written again with the next change.
    fn write(&self) -> Result<(), StoreError> {
        let _alone = self.0.writing.lock();
        let change = {
            let mut books = self.0.books.lock();
            let _guard = Guard(&self.0);
            if *self.0.broken.borrow() { None } else { Change::of(&mut books.core) }
        };
        let Some(change) = change else { return Ok(()) };
        let written = self.0.store.write(&change);
        if written.is_err() {
            change.undone(&mut self.0.books.lock().core);
        }
        written
    }

    fn act<T>(&self, call: impl FnOnce(&mut Core, u64) -> T) -> T {
        let begun = Instant::now();
        let (out, actions, undoes) = {
            let mut books = self.0.books.lock();
            let _guard = Guard(&self.0);
            let Books { core, sender, .. } = &mut *books;
            core.spans.stirs();
            core.look(self.0.dispatch.is_running(), now());
            let out = call(core, now());
            let (mut actions, mut counts) = core.take();
            let mut others = Vec::new();
            loop {
                for action in actions {
                    match action {
                        AgentAction::Send(message) => sender.add(message),
                        other => others.push(other),
                    }
                }
                let news = self.deliver(core, sender);
                if news.is_empty() {
                    break;
                }
                heed(core, news, now());
                let (more, counted) = core.take();
                actions = more;
                counts.extend(counted);
            }
            let undoes = counts.iter().any(|count| matches!(count, Count::RolledBack(_)));
            for count in counts {
                self.count(count, begun);
            }
            let next = core.journal.next();
            self.0.told.send_if_modified(|told| std::mem::replace(told, next) != next);
            (out, others, undoes)
        };
        for action in actions {
            self.perform(action);
        }
        if undoes {
            self.0.books.lock().core.spans.rolled_back();
        }
        self.0.sooner.notify_one();
        self.0.changed.notify_one();
        out
    }

    fn deliver(&self, core: &Core, sender: &mut Sender) -> Vec<News> {
        if !sender.is_busy() || self.is_closed() {
            return Vec::new();
        }
        let Some(state) = self.0.dispatch.state() else { return Vec::new() };
        let pace = ChainPace { now: now(), block_ms: self.0.block_ms };
        sender.deliver(core, &state, &self.0.dispatch.validators(), pace)
    }

    fn perform(&self, action: AgentAction) {
        if self.is_closed() {
            return;
        }
        match action {
            AgentAction::Execute { task, attempt, spec, until } => {
                let agent = self.clone();
                let left = Duration::from_millis(until.saturating_sub(now()));
                let until = tokio::time::Instant::now() + left.min(LONGEST_WAIT * 24);
                self.spawn(task, attempt, async move {
                    let work = Work { task, attempt, spec, until };
                    let given = |runner: Option<Address>| {
                        let name = runner.map(|runner| {
                            let name = agent.0.runners.get(&runner);
                            name.cloned().unwrap_or_else(|| runner.to_string())
                        });
                        agent.act(|core, now| core.given(&task, attempt, name, now));
                    };
                    let outcome = agent.0.dispatch.work(work, given).await;
                    agent.act(|core, now| core.worked(&task, attempt, outcome, now));
                });
            }
            AgentAction::Prove { task, attempt, what, latency_ms, crash } => {
                let agent = self.clone();
                let (seed, attempts) = {
                    let core = &self.0.books.lock().core;
                    (core.proof_seed(&task), core.machine.config().max_retries)
                };
                let latency = Duration::from_millis(latency_ms);
                self.spawn(task, attempt, async move {
                    let order = Order { task, what, seed, latency, crash, attempts };
                    let begins = || agent.act(|core, now| core.proving(&task, attempt, now));
                    let lost = |of: u64, error: &str| {
                        agent.0.metrics.prover_lost();
                        tracing::warn!(
                            taskId = %task, attempt = of, attempts, error, "Prover lost"
                        );
                        agent.act(|core, _| core.prover_lost(&task, attempt, (of, error)));
                    };
                    match agent.0.provers.prove(order, begins, lost).await {
                        Some(outcome) => {
                            agent.act(|core, now| core.proved(&task, attempt, outcome, now));
                        }
                        None => agent.act(|core, _| {
                            core.spans.done(&task, TaskStage::Generate, Err("its prover is gone"));
                        }),
                    }
                });
            }
            AgentAction::Stop { task, attempt } => {
                let mut doing = self.0.doing.lock();
                let Some(of_task) = doing.get_mut(&task) else { return };
                for (_, handle) in of_task.extract_if(.., |(of, _)| *of <= attempt) {
                    handle.abort();
                }
                if of_task.is_empty() {
                    doing.remove(&task);
                }
            }
            AgentAction::ConfirmAt { task, at } => {
                let agent = self.clone();
                let wait = Duration::from_millis(at.saturating_sub(now()));
                self.0.runtime.spawn(async move {
                    tokio::time::sleep(wait).await;
                    agent.act(|core, now| core.confirm(&task, now));
                });
            }
            AgentAction::Send(_) => {}
        }
    }

    fn spawn(&self, task: TaskId, attempt: u32, work: impl Future<Output = ()> + Send + 'static) {
        let mut doing = self.0.doing.lock();
        let handle = self.0.runtime.spawn(work).abort_handle();
        let of_task = doing.entry(task).or_default();
        of_task.retain(|(_, handle)| !handle.is_finished());
        of_task.push((attempt, handle));
    }

    /// Counts and logs an event (AgenC §8; docs/observability.md).
    fn count(&self, count: Count, begun: Instant) {
        let metrics = &self.0.metrics;
        match count {
            Count::Scheduled { depth } => metrics.scheduled(depth),
            Count::Rejected { reason } => metrics.rejected(reason),
            Count::ProofGenerated { task, took_ms } => {
                metrics.proof_generated(Duration::from_millis(took_ms));
                tracing::debug!(taskId = %task, durationMs = took_ms, "Proof made");
            }
            Count::ProofSubmitted { task, attempt } => {
                metrics.proof_submitted();
                tracing::debug!(taskId = %task, attempt, "Proof handed out");
            }
            Count::ProofDelivered { task, took_ms } => {
                metrics.proof_delivered(Duration::from_millis(took_ms));
                tracing::debug!(taskId = %task, durationMs = took_ms, "A validator has the proof");
            }
            Count::ProofFailed { task } => {
                metrics.proof_failed();
                tracing::error!(taskId = %task, "Proof failed");
            }
            Count::Confirmed { waited_ms } => {
                metrics.confirmed(waited_ms.map(Duration::from_millis));
            }
            Count::Slashed { task, reason, amount } => {
                metrics.slashed(amount);
                let reason = reason.map_or("none", RollbackReason::name);
                tracing::warn!(taskId = %task, reason, slashAmount = %amount, "The chain slashes");
            }
            Count::RolledBack(summary) => metrics.rolled_back(&summary, begun.elapsed()),
        }
    }
}

fn output_on_chain(state: &State, task: &TaskId) -> Option<Hash> {
    let output = state.task(task).and_then(Task::output_commitment)?;
    Some(Hash(output.to_bytes()))
}

fn heed(core: &mut Core, news: Vec<News>, now: u64) {
    for one in news {
        match one {
            News::Posted(message, transaction) => core.sent(&message, transaction, now),
            News::Lost { message, submission } => core.lost(message.task, submission, now),
            News::Refused(message, error) => core.refused(&message, &error, now),
        }
    }
}

async fn keep_time(agent: Agent) {
    while !agent.is_closed() {
        let due = agent.0.books.lock().core.due();
        let wait = due.map_or(LONGEST_WAIT, |due| Duration::from_millis(due.saturating_sub(now())));
        if wait.is_zero() {
            agent.act(|core, now| core.advance(now));
            // Another deadline of the same time has passed as well.
            tokio::task::yield_now().await;
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(wait.min(LONGEST_WAIT)) => {}
            () = agent.0.sooner.notified() => {}
        }
    }
}

/// Stores changes until the agent is stopped, using at most a tenth of the time.
async fn keep_books(agent: Agent) {
    while !agent.is_closed() {
        agent.0.changed.notified().await;
        let (writer, begun) = (agent.clone(), Instant::now());
        let written = tokio::task::spawn_blocking(move || writer.write()).await;
        let mut pause = WRITE_PAUSE.max(begun.elapsed() * 9);
        let refused = match written {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = refused {
            tracing::error!(error, "the agent's state is not stored; trying again");
            agent.0.changed.notify_one();
            pause = pause.max(RETRY_PAUSE);
        }
        tokio::time::sleep(pause).await;
    }
}

/// Unix ms.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Unix ms as the API's time.
fn time(ms: u64) -> TimeText {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    Text(Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX))
}

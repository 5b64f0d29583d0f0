//! Runs pipelines of tasks ahead of the chain (spec speculation.md, "In a devnet").
//!
//! The agent is an account of the devnet, and a part of its process. It has the runners do the work
//! of tasks, makes their proofs, and brings both onto the chain; what may run when, and what is
//! undone, the machine of [`cowboy_engine::speculation`] says.
//!
//! ```text
//!   pipelines ─▶ ┌──────┐ ─ Execute ─▶ crew ──▶ runners, by way of validators' gateways
//!   outputs ───▶ │ core │ ─ Prove ───▶ provers
//!   proofs ────▶ └──────┘ ─ Send ────▶ post ──▶ validators' mempools
//!   blocks ────────▲───────────────────┘
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `core` | what is known and decided, over one machine |
//! | `run` | a pipeline that was taken |
//! | `letter` | what the chain is told of a task |
//! | `post` | carries that to the chain |
//! | `crew` | has work done by runners |
//! | `prover` | makes proofs |
//! | `store` | what outlives the process |
//! | `view` | what the API answers |
//!
//! The core is called under one lock and never waits. Times are Unix ms of the machine's clock.
//! Nothing that the chain decides depends on them.

mod core;
mod crew;
mod letter;
mod post;
mod prover;
mod run;
mod store;
#[cfg(test)]
mod tests;
mod view;

pub use store::StoreError;

use self::{
    core::{Action, Core, Count},
    crew::{Crew, Work},
    letter::Pace,
    post::{News, Post},
    prover::{Order, Provers},
    store::{Change, Store},
};
use crate::{
    chain::ledger::ExecutedBlock,
    speculation::metrics::{Metrics, Standing},
    topology::Options,
    validator::{gateway::Gateway, node::Services},
};
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    chain::{EventKind, Scheme},
    primitives::{Address, Height, SecretKey, keccak256},
    speculation::TaskId,
};
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Weak},
    time::{Duration, Instant, SystemTime},
};
use tokio::{runtime::Handle, sync::Notify, task::AbortHandle};
use tracing::{Instrument as _, info_span};

/// The most of `proof.workerThreads`.
const MAX_WORKERS: usize = 32;
/// The least time between two writes of what has changed.
const WRITE_PAUSE: Duration = Duration::from_millis(50);
/// The longest wait for a deadline: nothing is due later than that.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// What an agent is made from.
pub struct Config {
    /// The agent's account.
    pub key: SecretKey,
    /// How it speculates at first.
    pub options: Options,
    /// How the chain checks proofs.
    pub scheme: Scheme,
    /// What the proving key is made from.
    pub proof_seed: [u8; 32],
    /// The chain.
    pub chain_id: u64,
    /// The pace of blocks.
    pub block_time: Duration,
    /// Names of runners.
    pub runners: BTreeMap<Address, String>,
    /// Where it keeps what outlives the process.
    pub path: PathBuf,
}

/// A devnet's agent. Cloning shares it.
#[derive(Clone)]
pub struct Agent(Arc<Inner>);

struct Inner {
    books: Mutex<Books>,
    crew: Crew,
    provers: Provers,
    store: Store,
    metrics: Metrics,
    runners: BTreeMap<Address, String>,
    block_ms: u64,
    /// What is being done for each task.
    doing: Mutex<BTreeMap<TaskId, Vec<AbortHandle>>>,
    /// Something may be due earlier than before.
    sooner: Notify,
    /// Something is to be stored.
    changed: Notify,
    runtime: Handle,
}

/// What is under the one lock.
struct Books {
    core: Core,
    post: Post,
    /// Whether what an earlier process left has been taken up.
    resumed: bool,
    /// The height of the last block seen.
    seen: Option<Height>,
}

impl Agent {
    /// An agent with what an earlier process left. Runs on the runtime that this is called on.
    pub fn open(config: Config) -> Result<Self, StoreError> {
        let Config { key, options, scheme, proof_seed, chain_id, block_time, runners, path } =
            config;
        let agent = key.address();
        // Salts and what blinds proofs: never told.
        let secret = keccak256(&[b"cowboy/agent-secret/v1", &key.to_bytes()]).0;
        let workers = options.config.worker_threads;
        let mut core = Core::new(agent, secret, options, now());
        let store = Store::open(&path, chain_id)?;
        store.load(&mut core, now())?;
        let books = Books { core, post: Post::new(key), resumed: false, seen: None };
        let inner = Inner {
            books: Mutex::new(books),
            crew: Crew::default(),
            provers: Provers::new(scheme, proof_seed, &agent, workers),
            store,
            metrics: Metrics::new(),
            runners,
            block_ms: u64::try_from(block_time.as_millis()).unwrap_or(u64::MAX).max(1),
            doing: Mutex::default(),
            sooner: Notify::new(),
            changed: Notify::new(),
            runtime: Handle::current(),
        };
        let agent = Self(Arc::new(inner));
        tokio::spawn(keep_time(Arc::downgrade(&agent.0)));
        tokio::spawn(keep_books(Arc::downgrade(&agent.0)));
        Ok(agent)
    }

    /// A validator runs from now on: the agent has its runners work, and talks to the chain by it.
    pub fn joined(&self, name: &str, services: Services, gateway: Gateway) {
        let state = services.ledger.head();
        self.0.crew.joined(name, services, gateway);
        let resume = {
            let mut books = self.0.books.lock();
            !std::mem::replace(&mut books.resumed, true)
        };
        if resume {
            self.act(|core, now| core.resume(&state, now));
        }
    }

    /// A validator runs no longer.
    pub fn left(&self, name: &str) {
        self.0.crew.left(name);
    }

    /// A block is final and executed.
    pub fn block(&self, block: &ExecutedBlock) {
        self.0.crew.stir();
        let height = block.block.header.height;
        let news = {
            let mut books = self.0.books.lock();
            let gap = books.seen.is_none_or(|seen| seen.next() != height);
            books.seen = Some(height);
            if gap {
                let now = now();
                books.core.catch_up(&block.execution.state, now);
            }
            books.post.block(block)
        };
        self.act(|core, now| {
            heed(core, news, now);
            for event in &block.execution.events {
                if let EventKind::TaskCompleted(completed) = &event.kind {
                    core.completed(&completed.task_id, now);
                }
            }
            core.advance(now);
        });
    }

    /// Stops all work and stores what there is.
    pub async fn stop(&self) {
        for handle in std::mem::take(&mut *self.0.doing.lock()).into_values().flatten() {
            handle.abort();
        }
        self.0.write().await;
    }

    /// Calls the core, then does what it says.
    fn act<T>(&self, call: impl FnOnce(&mut Core, u64) -> T) -> T {
        let begun = Instant::now();
        let (out, actions) = {
            let mut books = self.0.books.lock();
            let Books { core, post, .. } = &mut *books;
            let out = call(core, now());
            let (mut actions, mut counts) = core.take();
            let mut others = Vec::new();
            loop {
                for action in actions {
                    match action {
                        Action::Send(letter) => post.add(letter),
                        other => others.push(other),
                    }
                }
                let news = self.deliver(core, post);
                if news.is_empty() {
                    break;
                }
                heed(core, news, now());
                let (more, counted) = core.take();
                actions = more;
                counts.extend(counted);
            }
            self.count(core, counts, begun);
            (out, others)
        };
        for action in actions {
            self.perform(action);
        }
        self.0.sooner.notify_one();
        self.0.changed.notify_one();
        out
    }

    fn deliver(&self, core: &Core, post: &mut Post) -> Vec<News> {
        if !post.is_busy() {
            return Vec::new();
        }
        let Some(state) = self.0.crew.state() else { return post.nobody() };
        let pace = Pace { now: now(), block_ms: self.0.block_ms };
        post.deliver(core, &state, &self.0.crew.validators(), pace)
    }

    fn perform(&self, action: Action) {
        match action {
            Action::Execute { task, attempt, spec, until } => {
                let agent = self.clone();
                let left = Duration::from_millis(until.saturating_sub(now()));
                let until = tokio::time::Instant::now() + left.min(LONGEST_WAIT * 24);
                self.spawn(task, async move {
                    let work = Work { task, attempt, spec, until };
                    let started = |runner: Address| {
                        let name = agent.0.runners.get(&runner);
                        let name = name.cloned().unwrap_or_else(|| runner.to_string());
                        agent.act(|core, _| core.started(&task, attempt, name));
                    };
                    let outcome = agent.0.crew.work(work, started).await;
                    agent.act(|core, now| core.worked(&task, attempt, outcome, now));
                });
            }
            Action::Prove { task, attempt, witness, latency_ms, crash } => {
                let agent = self.clone();
                let seed = self.0.books.lock().core.proof_seed(&task);
                let latency = Duration::from_millis(latency_ms);
                let span = info_span!("speculation.proof_generate", task.id = %task);
                let proving = async move {
                    let order = Order { task, witness, seed, latency, crash };
                    if let Some(outcome) = agent.0.provers.prove(order).await {
                        agent.act(|core, now| core.proved(&task, attempt, outcome, now));
                    }
                };
                self.spawn(task, proving.instrument(span));
            }
            Action::Stop { task } => {
                for handle in self.0.doing.lock().remove(&task).into_iter().flatten() {
                    handle.abort();
                }
            }
            Action::ConfirmAt { task, at } => {
                let agent = self.clone();
                let wait = Duration::from_millis(at.saturating_sub(now()));
                let span = info_span!("speculation.confirm_wait", task.id = %task);
                let confirming = async move {
                    tokio::time::sleep(wait).await;
                    agent.act(|core, now| core.confirm(&task, now));
                };
                self.0.runtime.spawn(confirming.instrument(span));
            }
            Action::Send(_) => {}
        }
    }

    /// Does something for a task, until it is done or stopped.
    fn spawn(&self, task: TaskId, work: impl Future<Output = ()> + Send + 'static) {
        let mut doing = self.0.doing.lock();
        let handle = self.0.runtime.spawn(work).abort_handle();
        let of_task = doing.entry(task).or_default();
        of_task.retain(|handle| !handle.is_finished());
        of_task.push(handle);
    }

    /// Counts and tells what happened (AgenC §8; docs/observability.md).
    fn count(&self, core: &Core, counts: Vec<Count>, begun: Instant) {
        for count in counts {
            self.count_one(count, begun);
        }
        self.0.metrics.set(&Standing::of(&core.machine));
    }

    fn count_one(&self, count: Count, begun: Instant) {
        let metrics = &self.0.metrics;
        match count {
            Count::Scheduled { task, parents, depth, bond } => {
                metrics.scheduled(depth);
                let span = info_span!(
                    "speculation.schedule",
                    task.id = %task,
                    task.parent_id = parents,
                    speculation.accepted = true,
                    speculation.depth = depth,
                    speculation.required_bond = %bond,
                );
                span.in_scope(|| {
                    tracing::info!(
                        taskId = %task, parentTaskId = parents, depth, requiredBond = %bond,
                        "Task scheduled for speculation"
                    );
                });
            }
            Count::Rejected { task, parents, reason, error } => {
                metrics.rejected(reason);
                let span = info_span!(
                    "speculation.schedule",
                    task.id = %task,
                    task.parent_id = parents,
                    speculation.accepted = false,
                );
                span.in_scope(|| tracing::debug!(taskId = %task, %reason, error, "Task refused"));
            }
            Count::ProofGenerated { task, took_ms } => {
                metrics.proof_generated(Duration::from_millis(took_ms));
                tracing::debug!(taskId = %task, durationMs = took_ms, "Proof made");
            }
            Count::ProofSubmitted { task, attempt } => {
                metrics.proof_submitted();
                let span = info_span!("speculation.proof_submit", task.id = %task);
                span.in_scope(|| tracing::debug!(taskId = %task, attempt, "Proof handed out"));
            }
            Count::ProofDelivered { task, took_ms } => {
                metrics.proof_delivered(Duration::from_millis(took_ms));
                let span = info_span!("speculation.proof_submit", task.id = %task);
                span.in_scope(|| {
                    tracing::debug!(taskId = %task, durationMs = took_ms, "A validator has the proof");
                });
            }
            Count::ProofFailed { task } => {
                metrics.proof_failed();
                tracing::error!(taskId = %task, "Proof failed");
            }
            Count::Confirmed { task, transaction, waited_ms } => {
                metrics.confirmed(waited_ms.map(Duration::from_millis));
                tracing::info!(
                    taskId = %task,
                    txSignature = transaction.map(|hash| hash.to_string()),
                    confirmationLatencyMs = waited_ms,
                    "Speculative proof confirmed"
                );
            }
            Count::RolledBack(summary) => {
                metrics.rolled_back(&summary, begun.elapsed());
                let span = info_span!("speculation.rollback", task.id = %summary.trigger);
                span.in_scope(|| {
                    tracing::warn!(
                        triggerTaskId = %summary.trigger,
                        reason = %summary.reason,
                        affectedTasks = summary.tasks,
                        totalBondedStake = %summary.slashed.saturating_add(summary.released),
                        slashAmount = %summary.slashed,
                        "Triggering rollback"
                    );
                });
            }
        }
    }
}

impl Inner {
    /// Stores what has changed.
    async fn write(self: &Arc<Self>) {
        let Some(change) = Change::of(&mut self.books.lock().core) else { return };
        let inner = self.clone();
        let written = tokio::task::spawn_blocking(move || inner.store.write(change)).await;
        if let Ok(Err(error)) = written {
            tracing::error!(%error, "what the agent knows is not stored");
        }
    }
}

/// What came of letters, for the core.
fn heed(core: &mut Core, news: Vec<News>, now: u64) {
    for one in news {
        match one {
            News::Posted(letter, transaction) => core.posted(&letter, transaction, now),
            News::Lost { letter, submission } => core.lost(letter.task, submission, now),
            News::Refused(letter, error) => core.refused(&letter, &error, now),
        }
    }
}

/// Calls the core when something is due, as long as there is an agent.
async fn keep_time(agent: Weak<Inner>) {
    loop {
        let Some(inner) = agent.upgrade() else { return };
        let due = inner.books.lock().core.machine.next_deadline();
        let wait = due.map_or(LONGEST_WAIT, |due| Duration::from_millis(due.saturating_sub(now())));
        if wait.is_zero() {
            Agent(inner).act(|core, now| core.advance(now));
            // Another deadline of the same time has passed as well.
            tokio::task::yield_now().await;
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(wait.min(LONGEST_WAIT)) => {}
            () = inner.sooner.notified() => {}
        }
    }
}

/// Stores what has changed, as long as there is an agent.
async fn keep_books(agent: Weak<Inner>) {
    loop {
        let Some(inner) = agent.upgrade() else { return };
        inner.changed.notified().await;
        inner.write().await;
        drop(inner);
        tokio::time::sleep(WRITE_PAUSE).await;
    }
}

/// Unix ms.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

//! What a runner does for a job (spec jobs §7): one HTTP request, one command, a question to a
//! language model, one call of a tool, or one Ethereum transaction sent.
//!
//! [`Executor::run`] takes a [`Task`] and its [`Limits`] and yields the result's bytes or why there
//! are none, telling [`Progress`] on the way. Which kinds of tasks there are beside requests and
//! commands is up to the operator: [`config`].
//!
//! Whatever happens, it ends within the time limit and a moment, holds no more than
//! `max_return_bytes` of an answer, and leaves neither process nor file behind; so it does when it
//! is cancelled, or when its future is dropped.
//!
//! Everything here needs a Tokio runtime around it.

pub mod command;
pub mod config;
pub mod ethereum;
pub mod http;
pub mod llm;
pub mod mcp;
mod secrets;

pub use config::{Config, ConfigError};

use crate::{duration::Plain, spelling::Quoted};
use futures::future::BoxFuture;
use std::{
    env, fmt, io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::oneshot, time::timeout};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Make an HTTP request; the result is the response's body, or a part of it.
    Http(http::Request),
    /// Run a command; the result is what it writes to its standard output.
    Command(command::Command),
    /// Have a pool run a command; the result is the same.
    Pooled(command::Command),
    /// Ask a language model; the result is its answer, which may be embedded.
    Llm(llm::Request),
    /// Call a tool of an MCP server; the result is its answer.
    Mcp(mcp::Request),
    /// Send a signed Ethereum transaction; the result is its hash and receipt, as JSON.
    EthSend(ethereum::Request),
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Done, from 0 to 100; 0 where nobody can tell.
    pub percent: u8,
    /// What is being done, for people; one line.
    pub detail: Option<String>,
}

/// What a task may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest result, in bytes. A longer one is a failure, not cut off.
    pub max_return_bytes: usize,
    /// The longest time from the start.
    pub timeout: Duration,
    /// Private memory that each process of a command may have, in MiB; enforced on Linux. It does
    /// not bind the servers of `mcp` jobs, which are the operator's.
    pub max_memory_mb: Option<u64>,
}

/// Cancels a task: it ends when the other half is used, or dropped.
pub type Cancelled = oneshot::Receiver<()>;

/// Why a task has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutorError {
    /// The task makes no sense; nothing was started.
    #[error("invalid task: {0}")]
    Invalid(String),
    /// The command could not be started.
    #[error("cannot start {}: {reason}", Quoted(.program))]
    Start {
        /// The program, as the task names it.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// The command failed.
    #[error("exit code {code}{}", said(.stderr))]
    Exit {
        /// Its exit code, not 0.
        code: i32,
        /// The last line it wrote to its standard error, at most [`command::MAX_STDERR`] bytes.
        stderr: String,
    },
    /// The command was killed, by someone else than its executor.
    #[error("killed by signal {signal}{}", said(.stderr))]
    Signal {
        /// The signal's number.
        signal: i32,
        /// The last line it wrote to its standard error, at most [`command::MAX_STDERR`] bytes.
        stderr: String,
    },
    /// The result is longer than the job allows.
    #[error("result over the limit of {limit} bytes")]
    TooMuchOutput {
        /// The job's `max_return_bytes`.
        limit: usize,
    },
    /// The time was up.
    #[error("not done within {}", Plain(*.after))]
    TimedOut {
        /// The job's time limit.
        after: Duration,
    },
    /// Nobody wants the result any more.
    #[error("cancelled")]
    Cancelled,
    /// The server answered, but not with success.
    #[error("{url} answered {status}")]
    Status {
        /// The URL that answered, after redirects.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The endpoint answered, but not with success.
    #[error("{url} answered {status}{}", said(.message))]
    Answered {
        /// The URL that answered.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it said, at most 512 bytes of it; never a key.
        message: String,
    },
    /// The endpoint gave an error for an answer.
    #[error("{url} gave no answer{}", said(.message))]
    Refused {
        /// The endpoint.
        url: String,
        /// What it said, at most 512 bytes of it; never a key.
        message: String,
    },
    /// The request would go to the runner's own machine, which its operator has not allowed.
    #[error(
        "{} is on the runner's own machine, where http jobs may not go; its operator allows it: \
         `http: {{allow_loopback: true}}` in the runner's executors",
        Quoted(.host)
    )]
    Loopback {
        /// The host, as the URL or a redirect names it.
        host: String,
    },
    /// The server kept sending elsewhere.
    #[error("{url} redirects more than {} times", http::MAX_REDIRECTS)]
    Redirects {
        /// The URL of the task.
        url: String,
    },
    /// No complete answer came: no connection, no TLS, no HTTP, no JSON-RPC.
    #[error("{url}: {reason}")]
    Request {
        /// The URL of the task; of a server the operator configured, the part before its path.
        url: String,
        /// What went wrong, with its causes.
        reason: String,
    },
    /// The response has no value at the task's JSON pointer.
    #[error("the response has nothing at JSON pointer {}", Quoted(.pointer))]
    NothingThere {
        /// The pointer.
        pointer: String,
    },
    /// The task has a JSON pointer, and the response is not JSON.
    #[error("the response is not JSON: {0}")]
    NotJson(String),
    /// An MCP server ended the conversation, or broke its rules.
    #[error("MCP server {}: {reason}", Quoted(.server))]
    Mcp {
        /// The server, as the task names it.
        server: String,
        /// What it did.
        reason: String,
    },
    /// A tool says that it failed, or its server that it has no such tool.
    #[error("tool {} of MCP server {}: {reason}", Quoted(.tool), Quoted(.server))]
    Tool {
        /// The server, as the task names it.
        server: String,
        /// The tool, as the task names it.
        tool: String,
        /// What was said, at most [`mcp::MAX_REASON`] bytes.
        reason: String,
    },
    /// An Ethereum node answered with an error.
    #[error("{url} answered error {code}: {message}")]
    Node {
        /// The part before the path of the node's URL.
        url: String,
        /// The code of JSON-RPC.
        code: i64,
        /// The node's words, at most [`ethereum::MAX_MESSAGE`] bytes.
        message: String,
    },
    /// The runner's own machine failed.
    #[error("{what}: {reason}")]
    Local {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        reason: String,
    },
}

/// What a command or an endpoint said last, as the end of a sentence.
fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// What runs commands elsewhere.
pub trait Pool: Send + Sync {
    /// Has the command run. Dropped before its end, it gives the command up.
    fn run<'a>(
        &'a self,
        command: &'a command::Command,
        limits: &'a Limits,
        progress: &'a (dyn Fn(Progress) + Send + Sync),
    ) -> BoxFuture<'a, Result<Vec<u8>, ExecutorError>>;
}

/// A pool, if there is one.
#[derive(Clone, Default)]
struct Pooling(Option<Arc<dyn Pool>>);

impl fmt::Debug for Pooling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pooling").field(&self.0.is_some()).finish()
    }
}

/// Executes tasks, any number side by side. Clones share connections. The default one has nothing
/// configured.
#[derive(Debug, Clone)]
pub struct Executor {
    /// For servers that the operator names.
    http: http::Client,
    /// For requests of jobs that may not go to the loopback.
    remote: http::Client,
    allow_loopback: bool,
    llm: Option<Arc<llm::Endpoint>>,
    mcp: Arc<mcp::Servers>,
    eth: Option<Arc<ethereum::Endpoint>>,
    directories: command::Directories,
    pool: Pooling,
}

impl Default for Executor {
    fn default() -> Self {
        Self {
            http: http::Client::default(),
            remote: http::Client::not_local(),
            allow_loopback: false,
            llm: None,
            mcp: Arc::default(),
            eth: None,
            directories: command::Directories::default(),
            pool: Pooling::default(),
        }
    }
}

impl Executor {
    /// An executor with what its operator configured; keys are read from the environment.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        Self::default().configured(config)
    }

    /// One that is configured otherwise, and shares connections with this one.
    pub fn configured(&self, config: &Config) -> Result<Self, ConfigError> {
        self.with_variables(config, |name| env::var(name).ok())
    }

    fn with_variables(
        &self,
        config: &Config,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let llm = config.llm.as_ref().map(|llm| llm::Endpoint::new(llm, variable)).transpose()?;
        Ok(Self {
            http: self.http.clone(),
            remote: self.remote.clone(),
            allow_loopback: config.http.allow_loopback,
            llm: llm.map(Arc::new),
            mcp: Arc::new(config.mcp.clone()),
            eth: config.eth.clone().map(Arc::new),
            directories: self.directories.clone(),
            pool: self.pool.clone(),
        })
    }

    /// The same, with a pool for commands that are to be done by one.
    pub fn with_pool(self, pool: Arc<dyn Pool>) -> Self {
        Self { pool: Pooling(Some(pool)), ..self }
    }

    /// The same, with the directories of jobs in `folder`, which is made where there is none and
    /// used by nobody else. What is left there of jobs whose runner was killed is cleared away:
    /// their directories, and on Linux the processes that work in them. Commands are kept out of
    /// `private`, which is not the file system's root, but for their own directories
    /// ([`command::private`]). Errors: no such folder can be made or read.
    pub fn in_folder(self, folder: &Path, private: &Path) -> io::Result<Self> {
        let directories = command::Directories::in_folder(folder)?.keeping_out_of(private)?;
        Ok(Self { directories, ..self })
    }

    /// Executes `task`. `started` is called once, when the work itself begins: when the command
    /// runs, or the request goes out. It is not called where that does not come about. `progress`
    /// is called as often as there is news, from then on.
    pub async fn run(
        &self,
        task: &Task,
        limits: &Limits,
        mut cancelled: Cancelled,
        started: impl FnOnce(Instant) + Send,
        progress: impl Fn(Progress) + Send + Sync,
    ) -> Result<Vec<u8>, ExecutorError> {
        if !matches!(cancelled.try_recv(), Err(oneshot::error::TryRecvError::Empty)) {
            return Err(ExecutorError::Cancelled);
        }
        match task {
            Task::Http(request) => {
                let client = if self.allow_loopback { &self.http } else { &self.remote };
                let work = client.fetch(request, limits, started, progress);
                within(limits.timeout, cancelled, work).await
            }
            Task::Command(command) => {
                let directories = &self.directories;
                command::run(directories, command, limits, cancelled, started, progress).await
            }
            Task::Pooled(command) => {
                let pool = self.pool.0.as_ref().ok_or_else(|| {
                    let none = "this runner knows no lease server to hand the command to";
                    ExecutorError::Invalid(none.to_owned())
                })?;
                started(Instant::now());
                within(limits.timeout, cancelled, pool.run(command, limits, &progress)).await
            }
            Task::Llm(request) => {
                let endpoint = self.llm.as_ref().ok_or_else(|| {
                    ExecutorError::Invalid("this runner has no endpoint for llm jobs".to_owned())
                })?;
                let work = endpoint.ask(request, limits, started, progress);
                within(limits.timeout, cancelled, work).await
            }
            Task::Mcp(request) => {
                mcp::call(self, request, limits, cancelled, started, progress).await
            }
            Task::EthSend(request) => {
                let endpoint = self.eth.as_deref();
                let sent = ethereum::send(endpoint, &self.http, request, limits, started);
                within(limits.timeout, cancelled, sent).await
            }
        }
    }
}

/// Works until done, cancelled or out of time.
async fn within<T>(
    limit: Duration,
    cancelled: Cancelled,
    work: impl Future<Output = Result<T, ExecutorError>>,
) -> Result<T, ExecutorError> {
    tokio::select! {
        biased;
        // Used or dropped: either way nobody waits.
        _ = cancelled => Err(ExecutorError::Cancelled),
        done = timeout(limit, work) => {
            done.unwrap_or(Err(ExecutorError::TimedOut { after: limit }))
        }
    }
}

/// Bytes up to a limit: neither more is kept, nor much more than that is allocated.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl Bounded {
    const fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    fn push(&mut self, more: &[u8]) -> Result<(), ExecutorError> {
        let length = self.bytes.len() + more.len();
        if length > self.limit {
            return Err(ExecutorError::TooMuchOutput { limit: self.limit });
        }
        if length > self.bytes.capacity() {
            let capacity = (self.bytes.capacity() * 2).clamp(length, self.limit);
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(more);
        Ok(())
    }
}

//! A runner's work for a job (spec jobs §7): one HTTP request, one command, a question to a
//! language model, one tool call, or one Ethereum transaction.
//!
//! [`Executor::run`] takes a [`Task`] and its [`TaskLimits`] and returns the result's bytes or an
//! error, reporting [`TaskProgress`] on the way. The operator decides which kinds of tasks are
//! available besides requests and commands: [`config`].
//!
//! In every case the work ends shortly after the time limit at the latest, holds at most
//! `max_return_bytes` of an answer, and leaves no process or file behind. This also applies when it
//! is cancelled or its future is dropped.
//!
//! All functions require a Tokio runtime.

pub mod command;
pub mod config;
pub mod ethereum;
pub mod http;
pub mod llm;
pub mod mcp;
mod secrets;

pub use config::{Config, ConfigError};

use cowboy_host::{
    duration::Plain,
    process::{Directories, TaskProgress},
    spelling::Quoted,
};
use futures::future::BoxFuture;
use std::{
    env, fmt, io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::oneshot, time::timeout};

/// The work of one job; each kind says what its result is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Make an HTTP request; the result is the response's body or a part of it.
    Http(http::HttpRequest),
    /// Run a command; the result is its standard output.
    Command(command::Command),
    /// Have a pool run a command; the result is the same.
    Pooled(command::Command),
    /// Ask a language model; the result is its answer, which may be embedded.
    Llm(llm::LlmRequest),
    /// Call a tool of an MCP server; the result is its answer.
    Mcp(mcp::McpRequest),
    /// Send a signed Ethereum transaction; the result is its hash and receipt, as JSON.
    EthSend(ethereum::EthereumRequest),
}

/// Maximum bytes of a message around the job's result: JSON-RPC, JSON's escapes, and fields that
/// the result leaves out.
pub const JSON_RPC_OVERHEAD: usize = 64 << 10;

/// A task's resource limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskLimits {
    /// Maximum length of the result, in bytes. A longer one is a failure and is not cut off.
    pub max_return_bytes: usize,
    pub timeout: Duration,
    /// Private memory of each process of a command, in MiB; enforced on Linux. It does not apply to
    /// the servers of `mcp` jobs, which belong to the operator.
    pub max_memory_mb: Option<u64>,
}

/// Cancels a task when the other half is used or dropped.
pub type Cancelled = oneshot::Receiver<()>;

/// Why a task has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutorError {
    /// The task is invalid; nothing was started.
    #[error("invalid task: {0}")]
    Invalid(String),
    #[error("cannot start {}: {reason}", Quoted(.program))]
    Start { program: String, reason: String },
    #[error("exit code {code}{}", said(.stderr))]
    Exit {
        /// Its exit code, not 0.
        code: i32,
        /// The last line on its standard error, at most
        /// [`MAX_STDERR`](cowboy_host::process::MAX_STDERR) bytes.
        stderr: String,
    },
    #[error("killed by signal {signal}{}", said(.stderr))]
    Signal {
        signal: i32,
        /// The last line on its standard error, at most
        /// [`MAX_STDERR`](cowboy_host::process::MAX_STDERR) bytes.
        stderr: String,
    },
    #[error("result over the limit of {limit} bytes")]
    TooMuchOutput { limit: usize },
    #[error("not done within {}", Plain(*.after))]
    TimedOut { after: Duration },
    #[error("cancelled")]
    Cancelled,
    #[error("{url} answered {status}")]
    Status {
        /// The URL that answered, after redirects.
        url: String,
        status: u16,
    },
    #[error("{url} answered {status}{}", said(.message))]
    Answered {
        url: String,
        status: u16,
        /// The endpoint's message, at most 512 bytes; never contains a key.
        message: String,
    },
    #[error("{url} gave no answer{}", said(.message))]
    Refused {
        url: String,
        /// The endpoint's message, at most 512 bytes; never contains a key.
        message: String,
    },
    #[error(
        "{} is on the runner's own machine, where http jobs may not go; its operator allows it: \
         `http: {{allow_loopback: true}}` in the runner's executors",
        Quoted(.host)
    )]
    Loopback { host: String },
    #[error("{url} redirects more than {} times", http::MAX_REDIRECTS)]
    Redirects { url: String },
    /// No complete answer came: a failure of the connection, TLS, HTTP or JSON-RPC.
    #[error("{url}: {reason}")]
    Request {
        /// The task's URL; for a configured server, the part before its path.
        url: String,
        reason: String,
    },
    #[error("the response has nothing at JSON pointer {}", Quoted(.pointer))]
    NothingThere { pointer: String },
    #[error("the response is not JSON: {0}")]
    NotJson(String),
    #[error("MCP server {}: {reason}", Quoted(.server))]
    Mcp { server: String, reason: String },
    #[error("tool {} of MCP server {}: {reason}", Quoted(.tool), Quoted(.server))]
    Tool {
        server: String,
        tool: String,
        /// The message, at most [`mcp::MAX_REASON`] bytes.
        reason: String,
    },
    #[error("{url} answered error {code}: {message}")]
    Node {
        url: String,
        code: i64,
        /// The node's message, at most [`ethereum::MAX_MESSAGE`] bytes.
        message: String,
    },
    #[error("{what}: {reason}")]
    Local { what: &'static str, reason: String },
}

/// The last message of a command or an endpoint, as the end of a sentence.
fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// Runs commands elsewhere than on the runner's machine.
pub trait CommandPool: Send + Sync {
    /// Dropping the future gives the command up.
    fn run<'a>(
        &'a self,
        command: &'a command::Command,
        limits: &'a TaskLimits,
        progress: &'a (dyn Fn(TaskProgress) + Send + Sync),
    ) -> BoxFuture<'a, Result<Vec<u8>, ExecutorError>>;
}

#[derive(Clone, Default)]
struct Pooling(Option<Arc<dyn CommandPool>>);

impl fmt::Debug for Pooling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pooling").field(&self.0.is_some()).finish()
    }
}

/// Executes tasks, any number at the same time. Clones share connections. The default executor has
/// nothing configured.
#[derive(Debug, Clone)]
pub struct Executor {
    /// Client for servers that the operator names.
    http: http::HttpClient,
    /// Client for requests of jobs that may not go to the loopback.
    remote: http::HttpClient,
    allow_loopback: bool,
    llm: Option<Arc<llm::ModelEndpoint>>,
    mcp: Arc<mcp::Servers>,
    eth: Option<Arc<ethereum::NodeEndpoint>>,
    directories: Directories,
    pool: Pooling,
}

impl Default for Executor {
    fn default() -> Self {
        Self {
            http: http::HttpClient::default(),
            remote: http::HttpClient::not_local(),
            allow_loopback: false,
            llm: None,
            mcp: Arc::default(),
            eth: None,
            directories: Directories::default(),
            pool: Pooling::default(),
        }
    }
}

impl Executor {
    /// An executor with its operator's configuration; keys are read from the environment.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        Self::default().configured(config)
    }

    /// An executor with another configuration that shares connections with this one.
    pub fn configured(&self, config: &Config) -> Result<Self, ConfigError> {
        self.with_variables(config, |name| env::var(name).ok())
    }

    fn with_variables(
        &self,
        config: &Config,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let llm =
            config.llm.as_ref().map(|llm| llm::ModelEndpoint::new(llm, variable)).transpose()?;
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

    pub fn with_pool(self, pool: Arc<dyn CommandPool>) -> Self {
        Self { pool: Pooling(Some(pool)), ..self }
    }

    /// The same executor with the directories of jobs in `folder`, which is created if absent and
    /// must not be used by others. Remains of jobs of a killed runner are removed from it: their
    /// directories, and on Linux the processes that work in them. Commands are kept out of
    /// `private`, which must not be the file system's root, except for their own directories
    /// ([`cowboy_host::process::private`]). Fails if the folder cannot be created or read.
    pub fn in_folder(self, folder: &Path, private: &Path) -> io::Result<Self> {
        let directories = Directories::in_folder(folder)?.keeping_out_of(private)?;
        Ok(Self { directories, ..self })
    }

    /// Executes `task`. `started` is called once, when the work itself begins: when the command
    /// runs or the request goes out. It is not called if that never happens. From then on
    /// `progress` is called whenever there is news.
    pub async fn run(
        &self,
        task: &Task,
        limits: &TaskLimits,
        mut cancelled: Cancelled,
        started: impl FnOnce(Instant) + Send,
        progress: impl Fn(TaskProgress) + Send + Sync,
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

async fn within<T>(
    limit: Duration,
    cancelled: Cancelled,
    work: impl Future<Output = Result<T, ExecutorError>>,
) -> Result<T, ExecutorError> {
    tokio::select! {
        biased;
        // Used or dropped: in both cases the result is no longer wanted.
        _ = cancelled => Err(ExecutorError::Cancelled),
        done = timeout(limit, work) => {
            done.unwrap_or(Err(ExecutorError::TimedOut { after: limit }))
        }
    }
}

/// Bytes up to a limit. No more are kept, and little more is allocated.
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

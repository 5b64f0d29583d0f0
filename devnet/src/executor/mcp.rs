//! Calls a tool of a server that speaks the Model Context Protocol.
//!
//! Each job has its own connection: it initializes the server (`initialize`), calls the tool
//! (`tools/call`) and closes. A server is a program started for the job, or one at a URL
//! ([`Server`]). When a call has to stop, the server is notified (`notifications/cancelled`).
//!
//! The result is the tool's structured content, as JSON with sorted object keys. If there is no
//! structured content it is the answer's text, if the answer contains nothing else, and otherwise
//! the JSON of its list of contents.
//!
//! A server's message may be at most the job's `max_return_bytes` and [`JSON_RPC_OVERHEAD`] long. A
//! longer one ends the attempt before it is completely in memory.

mod server;
mod stdio;
mod streamable;
#[cfg(test)]
mod tests;

use super::{
    Cancelled, Executor, ExecutorError, JSON_RPC_OVERHEAD, TaskLimits, command::Command,
    http::chain, secrets::Secrets,
};
use cowboy_host::{process::TaskProgress, spelling::Quoted};
use rmcp::{
    ClientHandler, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig,
        ClientRequest, ContentBlock, Implementation, JsonObject, ProgressNotificationParam,
        ServerResult,
    },
    service::{
        ClientInitializeError, NotificationContext, PeerRequestOptions, RequestHandle,
        RunningService, ServiceError, serve_client,
    },
    transport::IntoTransport,
};
pub use server::{Server, Servers};
use std::{
    error::Error,
    pin::{Pin, pin},
    time::{Duration, Instant},
};
use tokio::{
    sync::mpsc,
    time::{Sleep, sleep, timeout},
};

/// Maximum bytes kept of a tool's reason for its failure.
pub const MAX_REASON: usize = 1024;

/// Time limit for a server to read the notification of a cancellation.
const NOTIFY_TIMEOUT: Duration = Duration::from_millis(150);

/// Time limit for closing a connection. A connection over HTTP continues in the background for at
/// most some seconds, until the server has answered that the session is over.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(50);

const LOG_HINT: &str = "what it wrote to its standard error is in the runner's log, at level debug";

/// Progress notices that may wait to be passed on; later ones are dropped.
const NOTICES: usize = 16;

/// A call of a tool of a configured MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpRequest {
    /// The server's configured name.
    pub server: String,
    pub tool: String,
    /// Its arguments: a JSON object.
    pub arguments: String,
}

/// Calls the tool and returns its result. `progress` is called for each progress notice: percents,
/// 0 if the server names no total, and the server's message.
pub(super) async fn call(
    executor: &Executor,
    request: &McpRequest,
    limits: &TaskLimits,
    cancelled: Cancelled,
    started: impl FnOnce(Instant) + Send,
    progress: impl Fn(TaskProgress) + Send + Sync,
) -> Result<Vec<u8>, ExecutorError> {
    let server = executor.mcp.0.get(&request.server).ok_or_else(|| {
        let name = Quoted(&request.server);
        ExecutorError::Invalid(format!("this runner has no MCP server {name}"))
    })?;
    let arguments = serde_json::from_str(&request.arguments).map_err(|error| {
        ExecutorError::Invalid(format!("arguments are not a JSON object: {error}"))
    })?;
    let call = Call { request, secrets: server.secrets() };
    let conversation = Conversation::new(&call, arguments, limits, cancelled);
    let (notices, heard) = mpsc::channel(NOTICES);
    let talk = async {
        match server {
            Server::Command { program, args, env } => {
                let command = Command {
                    program: program.clone(),
                    args: args.clone(),
                    env: env.clone(),
                    stdin: Vec::new(),
                };
                let directories = &executor.directories;
                stdio::call(directories, &command, limits, conversation, started, notices).await
            }
            Server::Url(url) => {
                let client = executor.http.get().await?.clone();
                started(Instant::now());
                let transport = streamable::transport(client, url, conversation.fatal());
                conversation.hold(transport, notices).await
            }
        }
    };
    call.result(telling(talk, heard, progress).await?, limits)
}

/// Passes on notices during `talk`, and the remaining ones after it.
async fn telling<T>(
    talk: impl Future<Output = T>,
    mut heard: mpsc::Receiver<TaskProgress>,
    progress: impl Fn(TaskProgress),
) -> T {
    let mut talk = pin!(talk);
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut talk => break answer,
            Some(notice) = heard.recv() => progress(notice),
        }
    };
    while let Ok(notice) = heard.try_recv() {
        progress(notice);
    }
    answer
}

struct Call<'a> {
    request: &'a McpRequest,
    secrets: Secrets,
}

impl Call<'_> {
    fn result(
        &self,
        answer: CallToolResult,
        limits: &TaskLimits,
    ) -> Result<Vec<u8>, ExecutorError> {
        let texts = answer.content.iter().map(|content| match content {
            ContentBlock::Text(content) => Some(&*content.text),
            _ => None,
        });
        if answer.is_error == Some(true) {
            let said: String = texts.flatten().collect();
            return Err(self.tool_failed(&said));
        }
        let json = |error: serde_json::Error| self.server_failed(error.to_string());
        let bytes = match (&answer.structured_content, texts.collect::<Option<String>>()) {
            (Some(value), _) => serde_json::to_vec(value).map_err(json)?,
            (None, Some(text)) => text.into_bytes(),
            (None, None) => serde_json::to_vec(&answer.content).map_err(json)?,
        };
        if bytes.len() > limits.max_return_bytes {
            return Err(ExecutorError::TooMuchOutput { limit: limits.max_return_bytes });
        }
        Ok(bytes)
    }

    fn tool_failed(&self, reason: &str) -> ExecutorError {
        let reason = if reason.is_empty() { "it failed and does not say why" } else { reason };
        ExecutorError::Tool {
            server: self.request.server.clone(),
            tool: self.request.tool.clone(),
            reason: self.secrets.shown(reason, MAX_REASON),
        }
    }

    fn server_failed(&self, reason: impl AsRef<str>) -> ExecutorError {
        let reason = self.secrets.shown(reason.as_ref(), MAX_REASON);
        ExecutorError::Mcp { server: self.request.server.clone(), reason }
    }

    fn not_greeted(&self, error: &ClientInitializeError) -> ExecutorError {
        self.server_failed(match error {
            ClientInitializeError::JsonRpcError(error) => {
                format!("answers initialize with error {}: {}", error.code.0, error.message)
            }
            ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::TransportError { .. } => {
                format!("ended before it answered initialize; {LOG_HINT}")
            }
            error => format!("initialize failed: {}", chain(error)),
        })
    }

    fn not_answered(&self, error: &ServiceError) -> ExecutorError {
        match error {
            ServiceError::McpError(error) => {
                self.tool_failed(&format!("error {}: {}", error.code.0, error.message))
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                self.server_failed(format!("ended before it answered tools/call; {LOG_HINT}"))
            }
            error => self.server_failed(chain(error)),
        }
    }
}

#[derive(Clone)]
struct Fatal {
    errors: mpsc::Sender<ExecutorError>,
    max_return_bytes: usize,
}

impl Fatal {
    fn tell(&self, error: ExecutorError) {
        // There was an error before, or the conversation is over.
        let _ = self.errors.try_send(error);
    }

    /// Maximum length of a message, in bytes.
    fn max_message(&self) -> usize {
        self.max_return_bytes.saturating_add(JSON_RPC_OVERHEAD)
    }

    fn too_much(&self) -> ExecutorError {
        let error = ExecutorError::TooMuchOutput { limit: self.max_return_bytes };
        self.tell(error.clone());
        error
    }
}

struct Conversation<'a> {
    call: &'a Call<'a>,
    arguments: JsonObject,
    limits: &'a TaskLimits,
    cancelled: Cancelled,
    deadline: Pin<Box<Sleep>>,
    errors: mpsc::Receiver<ExecutorError>,
    fatal: Fatal,
}

impl<'a> Conversation<'a> {
    fn new(
        call: &'a Call<'a>,
        arguments: JsonObject,
        limits: &'a TaskLimits,
        cancelled: Cancelled,
    ) -> Self {
        let (sender, errors) = mpsc::channel(1);
        let fatal = Fatal { errors: sender, max_return_bytes: limits.max_return_bytes };
        let deadline = Box::pin(sleep(limits.timeout));
        Self { call, arguments, limits, cancelled, deadline, errors, fatal }
    }

    fn fatal(&self) -> Fatal {
        self.fatal.clone()
    }

    /// Runs the conversation. When this returns, the connection is closed or closing.
    async fn hold<T: IntoTransport<RoleClient, E, A>, E: Error + Send + Sync + 'static, A>(
        mut self,
        transport: T,
        notices: mpsc::Sender<TaskProgress>,
    ) -> Result<CallToolResult, ExecutorError> {
        let listener = ServerListener { notices, secrets: self.call.secrets.clone() };
        let greeted = tokio::select! {
            biased;
            error = self.stopped() => return Err(error),
            greeted = serve_client(listener, transport) => greeted,
        };
        let mut service = greeted.map_err(|error| self.why(self.call.not_greeted(&error)))?;
        let answer = self.ask(&service).await;
        // An error: the connection's task has panicked, so the connection is gone.
        let _ = service.close_with_timeout(CLOSE_TIMEOUT).await;
        answer
    }

    async fn ask(
        &mut self,
        service: &RunningService<RoleClient, ServerListener>,
    ) -> Result<CallToolResult, ExecutorError> {
        let parameters = CallToolRequestParams::new(self.call.request.tool.clone())
            .with_arguments(std::mem::take(&mut self.arguments));
        let call = ClientRequest::CallToolRequest(CallToolRequest::new(parameters));
        let sent = service.peer().send_cancellable_request(call, PeerRequestOptions::no_options());
        let mut sent = sent.await.map_err(|error| self.why(self.call.not_answered(&error)))?;
        let answer = tokio::select! {
            biased;
            error = self.stopped() => {
                tell_cancelled(sent, &error).await;
                return Err(error);
            }
            answer = &mut sent.rx => answer.unwrap_or(Err(ServiceError::TransportClosed)),
        };
        match answer {
            Ok(ServerResult::CallToolResult(result)) => Ok(result),
            Ok(ServerResult::InputRequiredResult(_)) => {
                Err(self.call.tool_failed("it asks for input, which a job cannot give"))
            }
            Ok(ServerResult::CreateTaskResult(_)) => {
                Err(self.call.tool_failed("it answers with a task, but a job waits for results"))
            }
            Ok(_) => Err(self.call.server_failed("its answer does not fit tools/call")),
            Err(error) => Err(self.why(self.call.not_answered(&error))),
        }
    }

    async fn stopped(&mut self) -> ExecutorError {
        tokio::select! {
            biased;
            // Used or dropped: in both cases the result is no longer wanted.
            _ = &mut self.cancelled => ExecutorError::Cancelled,
            () = self.deadline.as_mut() => {
                ExecutorError::TimedOut { after: self.limits.timeout }
            }
            Some(error) = self.errors.recv() => error,
        }
    }

    /// The transport's error, which is more precise than the SDK's; else `error`.
    fn why(&mut self, error: ExecutorError) -> ExecutorError {
        self.errors.try_recv().unwrap_or(error)
    }
}

async fn tell_cancelled(call: RequestHandle<RoleClient>, why: &ExecutorError) {
    // A timeout: the server does not read. It is ended by force soon after.
    let _ = timeout(NOTIFY_TIMEOUT, call.cancel(Some(why.to_string()))).await;
}

/// The client's side of a server's requests: it offers nothing and only receives progress.
struct ServerListener {
    notices: mpsc::Sender<TaskProgress>,
    secrets: Secrets,
}

impl ClientHandler for ServerListener {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("cowboy-runner", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
    }

    async fn on_progress(
        &self,
        notice: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let total = notice.total.filter(|total| *total > 0.0);
        let percent =
            total.map_or(0.0, |total| (notice.progress / total * 100.0).clamp(0.0, 100.0));
        let detail = notice.message.map(|message| self.secrets.shown(&message, MAX_REASON));
        // The queue is full: the server sends more notices than needed.
        let _ = self.notices.try_send(TaskProgress { percent: percent as u8, detail });
    }
}

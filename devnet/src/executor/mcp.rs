//! Calls a tool of a server that speaks the Model Context Protocol.
//!
//! Each job has a connection of its own: the server is greeted (`initialize`), the tool called
//! (`tools/call`), the connection closed. A server is a program that is started for the job, or one
//! at a URL ([`Server`]). A call that has to stop is announced to the server
//! (`notifications/cancelled`).
//!
//! The result is the tool's structured content, as JSON with the keys of objects in order; where
//! there is none, its text, if it answers with nothing else; and otherwise the JSON of its list of
//! contents.
//!
//! No message of a server may be longer than the job's `max_return_bytes` and [`MAX_OVERHEAD`]: one
//! that is ends the attempt before it is all in memory.

mod server;
mod stdio;
mod streamable;
#[cfg(test)]
mod tests;

use super::{
    Cancelled, Executor, ExecutorError, Limits, Progress, command::Command, http::chain,
    secrets::Secrets,
};
use crate::spelling::Quoted;
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

/// The most that is kept of the reason a tool gives for its failure, in bytes.
pub const MAX_REASON: usize = 1024;

/// What a message may have beyond the job's `max_return_bytes`, in bytes: JSON-RPC around the
/// result, and what JSON escapes.
pub const MAX_OVERHEAD: usize = 64 * 1024;

/// How long a server that is told of a cancellation may take to read of it.
const NOTIFY_TIMEOUT: Duration = Duration::from_millis(150);

/// How long the end of a connection is waited for. One over HTTP goes on behind the job for some
/// seconds at most, until the server has answered that the session is over.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(50);

const LOG_HINT: &str = "what it wrote to its standard error is in the runner's log, at level debug";

/// Notices of progress that wait to be passed on; what comes beyond is not missed.
const NOTICES: usize = 16;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The server, by the name the operator gave it.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// Its arguments: a JSON object.
    pub arguments: String,
}

/// Calls the tool, and yields its result. `progress` hears of each notice of progress: percents, 0
/// where the server names no total, and what it says to that.
pub(super) async fn call(
    executor: &Executor,
    request: &Request,
    limits: &Limits,
    cancelled: Cancelled,
    started: impl FnOnce(Instant) + Send,
    progress: impl Fn(Progress) + Send + Sync,
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

/// Passes on what is heard while `talk` goes on, and then what is left of it.
async fn telling<T>(
    talk: impl Future<Output = T>,
    mut heard: mpsc::Receiver<Progress>,
    progress: impl Fn(Progress),
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

/// What is called, and what nobody is told of its server.
struct Call<'a> {
    request: &'a Request,
    secrets: Secrets,
}

impl Call<'_> {
    /// The bytes that stand for a tool's answer.
    fn result(&self, answer: CallToolResult, limits: &Limits) -> Result<Vec<u8>, ExecutorError> {
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
            error => format!("cannot be greeted: {}", chain(error)),
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

/// Where a transport says that the conversation is over, and why.
#[derive(Clone)]
struct Fatal {
    errors: mpsc::Sender<ExecutorError>,
    max_return_bytes: usize,
}

impl Fatal {
    fn tell(&self, error: ExecutorError) {
        // Another error was first, or nobody waits any more.
        let _ = self.errors.try_send(error);
    }

    /// The longest message, in bytes.
    fn max_message(&self) -> usize {
        self.max_return_bytes.saturating_add(MAX_OVERHEAD)
    }

    /// A message is longer.
    fn too_much(&self) -> ExecutorError {
        let error = ExecutorError::TooMuchOutput { limit: self.max_return_bytes };
        self.tell(error.clone());
        error
    }
}

/// One call, from greeting to farewell.
struct Conversation<'a> {
    call: &'a Call<'a>,
    arguments: JsonObject,
    limits: &'a Limits,
    cancelled: Cancelled,
    deadline: Pin<Box<Sleep>>,
    errors: mpsc::Receiver<ExecutorError>,
    fatal: Fatal,
}

impl<'a> Conversation<'a> {
    fn new(
        call: &'a Call<'a>,
        arguments: JsonObject,
        limits: &'a Limits,
        cancelled: Cancelled,
    ) -> Self {
        let (sender, errors) = mpsc::channel(1);
        let fatal = Fatal { errors: sender, max_return_bytes: limits.max_return_bytes };
        let deadline = Box::pin(sleep(limits.timeout));
        Self { call, arguments, limits, cancelled, deadline, errors, fatal }
    }

    /// For the transport.
    fn fatal(&self) -> Fatal {
        self.fatal.clone()
    }

    /// Speaks to the server. When this is over, so is the connection, or nearly.
    async fn hold<T, E, A>(
        mut self,
        transport: T,
        notices: mpsc::Sender<Progress>,
    ) -> Result<CallToolResult, ExecutorError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: Error + Send + Sync + 'static,
    {
        let listener = Listener { notices, secrets: self.call.secrets.clone() };
        let greeted = tokio::select! {
            biased;
            error = self.stopped() => return Err(error),
            greeted = serve_client(listener, transport) => greeted,
        };
        let mut service = greeted.map_err(|error| self.why(self.call.not_greeted(&error)))?;
        let answer = self.ask(&service).await;
        // An error: the task that speaks has panicked, and with it the connection is gone.
        let _ = service.close_with_timeout(CLOSE_TIMEOUT).await;
        answer
    }

    async fn ask(
        &mut self,
        service: &RunningService<RoleClient, Listener>,
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
                Err(self.call.tool_failed("it asks for input, and a job has nobody to give it"))
            }
            Ok(ServerResult::CreateTaskResult(_)) => {
                Err(self.call.tool_failed("it answers with a task, and a job waits for results"))
            }
            Ok(_) => Err(self.call.server_failed("its answer is none to tools/call")),
            Err(error) => Err(self.why(self.call.not_answered(&error))),
        }
    }

    /// Waits for a reason to stop.
    async fn stopped(&mut self) -> ExecutorError {
        tokio::select! {
            biased;
            // Used or dropped: either way nobody waits.
            _ = &mut self.cancelled => ExecutorError::Cancelled,
            () = self.deadline.as_mut() => {
                ExecutorError::TimedOut { after: self.limits.timeout }
            }
            Some(error) = self.errors.recv() => error,
        }
    }

    /// What the transport said, which knows more than the SDK passes on; else `error`.
    fn why(&mut self, error: ExecutorError) -> ExecutorError {
        self.errors.try_recv().unwrap_or(error)
    }
}

/// Tells the server that nobody waits for this call.
async fn tell_cancelled(call: RequestHandle<RoleClient>, why: &ExecutorError) {
    // An error of time: it does not read. Its end is forced soon after.
    let _ = timeout(NOTIFY_TIMEOUT, call.cancel(Some(why.to_string()))).await;
}

/// What the server may ask of a client: nothing. It is heard where it tells of progress.
struct Listener {
    notices: mpsc::Sender<Progress>,
    secrets: Secrets,
}

impl ClientHandler for Listener {
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
        // No room: more of it comes than anybody reads.
        let _ = self.notices.try_send(Progress { percent: percent as u8, detail });
    }
}

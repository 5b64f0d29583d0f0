//! A server that is started for the job, and speaks over its standard input and output: one
//! JSON-RPC message on each line.

use super::{
    super::{
        ExecutorError, Limits, Progress,
        command::{Command, Directories, END_TIMEOUT, Process, local, pump},
    },
    CLOSE_TIMEOUT, Conversation, Fatal, NOTIFY_TIMEOUT,
};
use rmcp::{model::CallToolResult, transport::async_rw::AsyncRwTransport};
use std::{
    convert::Infallible,
    future::pending,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, ReadBuf},
    process::ChildStderr,
    signal::unix::{self, SignalKind},
    sync::mpsc,
    time::timeout,
};

/// How long a server has to end by itself once its standard input is closed.
const FAREWELL_TIMEOUT: Duration = Duration::from_millis(150);

// A cancelled task is over within a second (spec jobs §7).
const _: () = assert!(
    NOTIFY_TIMEOUT.as_millis()
        + CLOSE_TIMEOUT.as_millis()
        + FAREWELL_TIMEOUT.as_millis()
        + END_TIMEOUT.as_millis()
        < 1000
);

/// The most that is logged of a line that a server writes to its standard error, in bytes.
const MAX_LOGGED: usize = 1024;

/// Starts the server, holds the conversation with it and clears it away.
pub(super) async fn call(
    directories: &Directories,
    command: &Command,
    limits: &Limits,
    conversation: Conversation<'_>,
    started: impl FnOnce(Instant) + Send,
    notices: mpsc::Sender<Progress>,
) -> Result<CallToolResult, ExecutorError> {
    // Before the start, or the exit of a quick server could be missed.
    let mut exits = unix::signal(SignalKind::child()).map_err(local("cannot watch processes"))?;
    // The job's memory limit is none for a program of the operator's.
    let limits = Limits { max_memory_mb: None, ..*limits };
    let mut process = Process::start(directories, command, &limits).await?;
    started(Instant::now());
    let child = process.child();
    let stdin = child.stdin.take().expect("all streams are piped");
    let stdout = child.stdout.take().expect("all streams are piped");
    let stderr = child.stderr.take();

    let server = conversation.call.request.server.clone();
    let talk = async {
        let lines = Lines { inner: stdout, length: 0, fatal: conversation.fatal() };
        // Longer lines would be skipped and the answer waited for in vain: `Lines` bounds them.
        let transport = AsyncRwTransport::new_client(lines, stdin).with_max_line_length(usize::MAX);
        let answer = conversation.hold(transport, notices).await;
        // An error of time: it stays, and is killed below.
        let _ = timeout(FAREWELL_TIMEOUT, process.exited(&mut exits)).await;
        answer
    };
    let answer = tokio::select! {
        answer = talk => answer,
        never = log(stderr, &server) => match never {},
    };
    let ended = process.end().await;
    let answer = answer?;
    ended?;
    Ok(answer)
}

/// Logs what the server writes to its standard error, for as long as anybody waits.
async fn log(stderr: Option<ChildStderr>, server: &str) -> Infallible {
    let mut line = Vec::new();
    let end = pump(stderr, |bytes| {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            line.extend_from_slice(&part[..part.len().min(MAX_LOGGED - line.len())]);
            if part.ends_with(b"\n") {
                tracing::debug!(server, "{}", String::from_utf8_lossy(&line).trim_end());
                line.clear();
            }
        }
        Ok(())
    });
    if let Err(error) = end.await {
        tracing::debug!(server, %error, "nothing more from its standard error");
    }
    pending().await
}

/// Lines of a bounded length: at a longer one the stream fails, before it is all in memory.
struct Lines<R> {
    inner: R,
    /// Bytes of the current line so far.
    length: usize,
    fatal: Fatal,
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        for part in buffer.filled()[before..].split_inclusive(|byte| *byte == b'\n') {
            self.length += part.len();
            if self.length > self.fatal.max_message() {
                let error = self.fatal.too_much();
                return Poll::Ready(Err(std::io::Error::other(error)));
            }
            if part.ends_with(b"\n") {
                self.length = 0;
            }
        }
        Poll::Ready(Ok(()))
    }
}

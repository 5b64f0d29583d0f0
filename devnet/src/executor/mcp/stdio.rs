//! A server that is started for the job and communicates over its standard input and output, with
//! one JSON-RPC message per line.

use super::{
    super::{
        ExecutorError, TaskLimits,
        command::{Command, CommandProcess, local, pump},
    },
    CLOSE_TIMEOUT, Conversation, Fatal, NOTIFY_TIMEOUT,
};
use cowboy_host::process::{Directories, END_TIMEOUT, TaskProgress};
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

/// Time limit for a server to end by itself after its standard input is closed.
const FAREWELL_TIMEOUT: Duration = Duration::from_millis(150);

// A cancelled task is over within a second (spec jobs §7).
const _: () = assert!(
    NOTIFY_TIMEOUT.as_millis()
        + CLOSE_TIMEOUT.as_millis()
        + FAREWELL_TIMEOUT.as_millis()
        + END_TIMEOUT.as_millis()
        < 1000
);

/// Maximum bytes logged of a line on a server's standard error.
const MAX_LOGGED: usize = 1024;

pub(super) async fn call(
    directories: &Directories,
    command: &Command,
    limits: &TaskLimits,
    conversation: Conversation<'_>,
    started: impl FnOnce(Instant) + Send,
    notices: mpsc::Sender<TaskProgress>,
) -> Result<CallToolResult, ExecutorError> {
    // Before the start, or the exit of a quick server could be missed.
    let mut exits = unix::signal(SignalKind::child()).map_err(local("cannot watch processes"))?;
    // The job's memory limit does not apply to the operator's programs.
    let limits = TaskLimits { max_memory_mb: None, ..*limits };
    let mut process = CommandProcess::start(directories, command, &limits).await?;
    started(Instant::now());
    let child = process.child();
    let stdin = child.stdin.take().expect("all streams are piped");
    let stdout = child.stdout.take().expect("all streams are piped");
    let stderr = child.stderr.take();

    let server = conversation.call.request.server.clone();
    let talk = async {
        let lines = BoundedLines { inner: stdout, length: 0, fatal: conversation.fatal() };
        // The SDK would skip longer lines and wait for the answer in vain, so `Lines` limits
        // them.
        let transport = AsyncRwTransport::new_client(lines, stdin).with_max_line_length(usize::MAX);
        let answer = conversation.hold(transport, notices).await;
        // A timeout: it does not end by itself, and is killed below.
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

/// Lines of limited length: a longer one makes the stream fail before it is completely in memory.
struct BoundedLines<R> {
    inner: R,
    length: usize,
    fatal: Fatal,
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
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

//! Connections and bodies that watch their client's progress.

use super::places::{Seat, Turn};
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use std::{
    error::Error,
    io::{self, IoSlice},
    iter,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

struct Patience {
    limit: Duration,
    over: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    fn new(limit: Duration) -> Self {
        Self { limit, over: None }
    }

    /// Ready when the client has made no progress for too long.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let limit = self.limit;
        let over = self.over.get_or_insert_with(|| Box::pin(sleep(limit)));
        over.as_mut().poll(cx).map(|()| {
            io::Error::new(io::ErrorKind::TimedOut, "the client made no progress for too long")
        })
    }

    fn reset(&mut self) {
        self.over = None;
    }
}

/// A connection that tells its seat whether the client reads, and when the server has first read
/// everything that the client had sent. It fails when the client does not read for too long.
pub(super) struct Watched<S> {
    stream: S,
    seat: Arc<Seat>,
    /// Whether a read has found nothing more to read.
    drained: bool,
    stalled: bool,
    patience: Patience,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, patience: Duration, seat: Arc<Seat>) -> Self {
        let patience = Patience::new(patience);
        Self { stream, seat, drained: false, stalled: false, patience }
    }

    fn wrote<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let stalled = written.is_pending();
        if stalled != self.stalled {
            self.stalled = stalled;
            self.seat.stalled(stalled);
        }
        if stalled {
            return self.patience.poll_over(cx).map(Err);
        }
        self.patience.reset();
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_pending() && !self.drained {
            self.drained = true;
            self.seat.drained();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.wrote(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.wrote(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.wrote(cx, shut)
    }
}

/// Whether a body failed because its client made no progress for too long.
pub fn is_late(error: &axum::Error) -> bool {
    let first: &(dyn Error + 'static) = error;
    iter::successors(Some(first), |&error| error.source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::TimedOut)
}

/// A request's body. The server's turn begins when the body ends; the body fails when the client
/// sends nothing for too long.
pub(super) struct Arriving {
    body: Incoming,
    turn: Arc<Turn>,
    patience: Patience,
}

impl Arriving {
    pub(super) fn new(body: Incoming, patience: Duration, turn: Arc<Turn>) -> Self {
        if body.is_end_stream() {
            turn.begin();
        }
        Self { body, turn, patience: Patience::new(patience) }
    }
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => {
                self.patience.poll_over(cx).map(|error| Some(Err(axum::Error::new(error))))
            }
            Poll::Ready(frame) => {
                self.patience.reset();
                match frame.is_none() || self.body.is_end_stream() {
                    true => self.turn.begin(),
                    false => self.turn.progress(),
                }
                Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

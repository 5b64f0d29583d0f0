//! Faults of links from nodes that have no tap in this process: what they send is lost and delayed
//! when it is received.

use crate::faults::{Decision, Delayed, PeerSeat, Tally, Tap};
use commonware_utils::sync::Mutex;
use quinn::{AsyncUdpSocket, udp::RecvMeta};
use std::{
    io::{self, IoSliceMut},
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep_until};

/// Received datagrams that are delayed.
#[derive(Default)]
pub(super) struct Inbox {
    waiting: Mutex<DelayedDatagrams>,
}

#[derive(Default)]
struct DelayedDatagrams {
    delayed: Delayed<SocketAddr, Instant, Received>,
    /// Ends when the first of them is due.
    timer: Option<Pin<Box<Sleep>>>,
}

struct Received {
    meta: RecvMeta,
    contents: Vec<u8>,
}

impl Inbox {
    /// Receives from the socket as [`AsyncUdpSocket::poll_recv`] does.
    pub(super) fn poll(
        &self,
        socket: &dyn AsyncUdpSocket,
        tap: &Tap,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let waiting = &mut *self.waiting.lock();
        if tap.is_quiet() && waiting.delayed.is_empty() {
            return socket.poll_recv(context, buffers, meta);
        }
        loop {
            if let Some(Received { meta: due, contents }) = waiting.delayed.pop(Instant::now()) {
                buffers[0][..contents.len()].copy_from_slice(&contents);
                meta[0] = due;
                return Poll::Ready(Ok(1));
            }
            match socket.poll_recv(context, buffers, meta) {
                Poll::Ready(Ok(count)) => {
                    let kept = waiting.admit(tap, buffers, &mut meta[..count]);
                    if kept > 0 {
                        return Poll::Ready(Ok(kept));
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => ready!(waiting.poll_due(context)),
            }
        }
    }
}

impl DelayedDatagrams {
    /// Resolves when the first delayed datagram is due.
    fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(due) = self.delayed.next_due() else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if timer.deadline() != due {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(context)
    }

    /// Takes out what is lost or delayed; returns the number of buffers that are left.
    fn admit(&mut self, tap: &Tap, buffers: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> usize {
        let mut kept = 0;
        for at in 0..meta.len() {
            let length = self.admit_batch(tap, &mut buffers[at], meta[at]);
            if length == 0 {
                continue;
            }
            let (before, rest) = buffers.split_at_mut(at);
            if let Some(place) = before.get_mut(kept) {
                place[..length].copy_from_slice(&rest[0][..length]);
            }
            meta[kept] = RecvMeta { len: length, ..meta[at] };
            kept += 1;
        }
        kept
    }

    /// The same for a buffer with datagrams of one size, except maybe the last; returns the bytes
    /// that are left.
    fn admit_batch(&mut self, tap: &Tap, buffer: &mut [u8], meta: RecvMeta) -> usize {
        let (from, size) = (PeerSeat::Udp(meta.addr), meta.stride.max(1));
        let (mut kept, mut at) = (0, 0);
        while at < meta.len {
            let end = (at + size).min(meta.len);
            if self.passes(tap, &from, meta, &buffer[at..end]) {
                buffer.copy_within(at..end, kept);
                kept += end - at;
            }
            at = end;
        }
        kept
    }

    /// Whether a datagram arrives now. Otherwise it is lost, or waits.
    fn passes(&mut self, tap: &Tap, from: &PeerSeat, meta: RecvMeta, contents: &[u8]) -> bool {
        let now = Instant::now();
        let (by, ordered, tally) = match tap.incoming_from_apart(from) {
            Decision::Drop => return false,
            Decision::Pass if !self.delayed.holds_up(&meta.addr, now) => return true,
            Decision::Pass => (Duration::ZERO, true, None),
            Decision::Delay { by, ordered, tally } => (by, ordered, Some(tally)),
        };
        self.delay(now + by, ordered, meta, contents, tally);
        false
    }

    fn delay(
        &mut self,
        due: Instant,
        ordered: bool,
        meta: RecvMeta,
        contents: &[u8],
        tally: Option<Arc<Tally>>,
    ) {
        let meta = RecvMeta { len: contents.len(), stride: contents.len(), ..meta };
        let received = (Received { meta, contents: contents.to_vec() }, contents.len());
        self.delayed.push(meta.addr, due, ordered, received, tally);
    }
}

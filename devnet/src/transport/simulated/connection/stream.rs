//! A simulated stream: two halves, each with the state of its writer and its reader.

use super::{Fabric, Hold, LinkCore, LinkMessage, Runtime, Side};
use crate::transport::{RecvStream, STREAM_WINDOW, SendStream, TransportError};
use bytes::Bytes;
use commonware_utils::sync::Mutex;
use futures::future;
use std::{collections::VecDeque, pin::pin, sync::Arc, time::SystemTime};
use tokio::sync::{Notify, futures::Notified};

const WINDOW: u64 = STREAM_WINDOW as u64;

/// The state of a stream, shared by both ends and the messages between them.
pub(in crate::transport::simulated) struct Stream {
    opener: Side,
    state: Mutex<StreamState>,
    changed: [Notify; 2],
}

struct StreamState {
    halves: [Half; 2],
    /// Whether the side that did not open it knows of it.
    announced: bool,
    /// Whether that side told the opener that the stream is over.
    released: bool,
}

struct Half {
    /// Bytes written so far, and the maximum that may be written, in total.
    sent: u64,
    limit: u64,
    end: Option<Ending>,
    /// Whether the writer has heard that the reader stopped.
    stopped: bool,
    /// Whether the writer has heard that the end arrived.
    acknowledged: bool,
    /// Arrival time of the last message for the reader, which no later one may overtake.
    last: SystemTime,

    /// Bytes that have arrived; together with those in flight at most [`STREAM_WINDOW`].
    unread: VecDeque<Bytes>,
    /// Bytes read so far, and the last limit granted to the writer.
    read: u64,
    granted: u64,
    /// How it ended, once the end has arrived.
    ended: Option<Ending>,
    left: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Finished,
    Abandoned,
}

impl Half {
    const fn new() -> Self {
        Self {
            sent: 0,
            limit: WINDOW,
            end: None,
            stopped: false,
            acknowledged: false,
            last: SystemTime::UNIX_EPOCH,
            unread: VecDeque::new(),
            read: 0,
            granted: WINDOW,
            ended: None,
            left: false,
        }
    }
}

impl Stream {
    pub(super) fn new(opener: Side) -> Self {
        let halves = [Half::new(), Half::new()];
        Self {
            opener,
            state: Mutex::new(StreamState { halves, announced: false, released: false }),
            changed: [Notify::new(), Notify::new()],
        }
    }

    fn changed(&self, side: Side) -> Notified<'_> {
        self.changed[side.index()].notified()
    }

    fn wake(&self, side: Side) {
        self.changed[side.index()].notify_waiters();
    }

    /// Whether `side` did not open the stream and has not heard of it before.
    pub(super) fn announce(&self, side: Side) -> bool {
        let mut state = self.state.lock();
        side != self.opener && !std::mem::replace(&mut state.announced, true)
    }

    pub(super) fn arrived(&self, to: Side, bytes: Bytes) {
        let half = &mut self.state.lock().halves[to.other().index()];
        if !half.left {
            half.unread.push_back(bytes);
            self.wake(to);
        }
    }

    /// Delivers the end to the reader `to`.
    pub(super) fn ended<E: Runtime>(
        self: &Arc<Self>,
        fabric: &Fabric<E>,
        core: &Arc<LinkCore>,
        to: Side,
        finished: bool,
    ) {
        let mut state = self.state.lock();
        let half = &mut state.halves[to.other().index()];
        half.ended = Some(if finished { Ending::Finished } else { Ending::Abandoned });
        if finished {
            let message = LinkMessage::Acknowledged { stream: self.clone() };
            fabric.send(core, to, message, SystemTime::UNIX_EPOCH);
        } else {
            // As with a reset in QUIC, unread bytes are discarded.
            half.unread.clear();
        }
        self.wake(to);
        self.release(&mut state, fabric, core);
    }

    /// Tells the writer `to` that the reader has stopped.
    pub(super) fn stopped<E: Runtime>(&self, fabric: &Fabric<E>, core: &Arc<LinkCore>, to: Side) {
        let mut state = self.state.lock();
        state.halves[to.index()].stopped = true;
        self.wake(to);
        self.release(&mut state, fabric, core);
    }

    /// Tells the writer `to` that the end has arrived.
    pub(super) fn acknowledged<E: Runtime>(
        &self,
        fabric: &Fabric<E>,
        core: &Arc<LinkCore>,
        to: Side,
    ) {
        let mut state = self.state.lock();
        state.halves[to.index()].acknowledged = true;
        self.wake(to);
        self.release(&mut state, fabric, core);
    }

    pub(super) fn credited(&self, to: Side, limit: u64) {
        let half = &mut self.state.lock().halves[to.index()];
        half.limit = half.limit.max(limit);
        self.wake(to);
    }

    /// Tells the opener, once, that both halves are over at the other side.
    fn release<E: Runtime>(
        &self,
        state: &mut StreamState,
        fabric: &Fabric<E>,
        core: &Arc<LinkCore>,
    ) {
        let acceptor = self.opener.other();
        let incoming = &state.halves[self.opener.index()];
        let outgoing = &state.halves[acceptor.index()];
        let over = (incoming.ended.is_some() || incoming.left)
            && (outgoing.acknowledged
                || outgoing.stopped
                || outgoing.end == Some(Ending::Abandoned));
        if over && !std::mem::replace(&mut state.released, true) {
            fabric.send(core, acceptor, LinkMessage::Released, SystemTime::UNIX_EPOCH);
        }
    }
}

struct Handle<E: Runtime> {
    hold: Arc<Hold<E>>,
    stream: Arc<Stream>,
}

impl<E: Runtime> Handle<E> {
    /// Waits until `check` returns something; `check` is called again after each change. Fails with
    /// the connection.
    async fn until<T>(
        &self,
        mut check: impl FnMut(&mut StreamState) -> Option<Result<T, TransportError>>,
    ) -> Result<T, TransportError> {
        let Hold { core, side, .. } = &*self.hold;
        loop {
            let stream = pin!(self.stream.changed(*side));
            let connection = pin!(core.changed(*side));
            if let Some(found) = check(&mut self.stream.state.lock()) {
                return found;
            }
            core.check(*side)?;
            future::select(stream, connection).await;
        }
    }

    fn send(&self, message: LinkMessage, after: SystemTime) -> SystemTime {
        self.hold.fabric.send(&self.hold.core, self.hold.side, message, after)
    }

    /// The index of the half that this side writes.
    fn own(&self) -> usize {
        self.hold.side.index()
    }

    /// Ends the half that this side writes, unless it has ended.
    fn end(&self, how: Ending) {
        let mut state = self.stream.state.lock();
        let half = &mut state.halves[self.own()];
        if half.end.is_some() {
            return;
        }
        half.end = Some(how);
        let stream = self.stream.clone();
        half.last =
            self.send(LinkMessage::End { stream, finished: how == Ending::Finished }, half.last);
        self.release(&mut state);
    }

    /// Tells the opener if a change on this side has ended the stream here.
    fn release(&self, state: &mut StreamState) {
        if self.hold.side != self.stream.opener {
            self.stream.release(state, &self.hold.fabric, &self.hold.core);
        }
    }
}

/// The writing half of a simulated stream.
pub struct SimSend<E: Runtime>(Handle<E>);

impl<E: Runtime> SimSend<E> {
    pub(super) const fn new(hold: Arc<Hold<E>>, stream: Arc<Stream>) -> Self {
        Self(Handle { hold, stream })
    }
}

impl<E: Runtime> SendStream for SimSend<E> {
    async fn write(&mut self, bytes: &[u8]) -> Result<(), TransportError> {
        let mut rest = bytes;
        loop {
            self.0.hold.core.check(self.0.hold.side)?;
            let written = self
                .0
                .until(|state| {
                    let half = &mut state.halves[self.0.own()];
                    if half.stopped {
                        return Some(Err(TransportError::StreamAbandoned));
                    }
                    if half.end.is_some() {
                        return Some(Err(TransportError::StreamFinished));
                    }
                    let room = usize::try_from(half.limit - half.sent).unwrap_or(usize::MAX);
                    let now = rest.len().min(room);
                    if now == 0 {
                        return rest.is_empty().then_some(Ok(0));
                    }
                    half.sent += now as u64;
                    let bytes = Bytes::copy_from_slice(&rest[..now]);
                    let stream = self.0.stream.clone();
                    half.last = self.0.send(LinkMessage::Data { stream, bytes }, half.last);
                    Some(Ok(now))
                })
                .await?;
            rest = &rest[written..];
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    fn finish(&mut self) {
        self.0.end(Ending::Finished);
    }

    async fn delivered(&mut self) -> Result<(), TransportError> {
        self.finish();
        self.0
            .until(|state| {
                let half = &state.halves[self.0.own()];
                if half.acknowledged {
                    return Some(Ok(()));
                }
                half.stopped.then_some(Err(TransportError::StreamAbandoned))
            })
            .await
    }
}

impl<E: Runtime> Drop for SimSend<E> {
    fn drop(&mut self) {
        self.0.end(Ending::Abandoned);
    }
}

/// The reading half of a simulated stream.
pub struct SimRecv<E: Runtime>(Handle<E>);

impl<E: Runtime> SimRecv<E> {
    pub(super) const fn new(hold: Arc<Hold<E>>, stream: Arc<Stream>) -> Self {
        Self(Handle { hold, stream })
    }

    /// The index of the half that this side reads.
    fn half(&self) -> usize {
        self.0.hold.side.other().index()
    }
}

impl<E: Runtime> RecvStream for SimRecv<E> {
    async fn read(&mut self, max: usize) -> Result<Option<Bytes>, TransportError> {
        self.0
            .until(|state| {
                let half = &mut state.halves[self.half()];
                let Some(mut bytes) = half.unread.pop_front() else {
                    return half.ended.map(|ended| match ended {
                        Ending::Finished => Ok(None),
                        Ending::Abandoned => Err(TransportError::StreamAbandoned),
                    });
                };
                if bytes.len() > max {
                    half.unread.push_front(bytes.split_off(max));
                }
                half.read += bytes.len() as u64;
                // Half a window at a time: credit for every read would double the messages.
                if half.ended.is_none() && half.read + WINDOW - half.granted >= WINDOW / 2 {
                    half.granted = half.read + WINDOW;
                    let (stream, limit) = (self.0.stream.clone(), half.granted);
                    self.0.send(LinkMessage::Credit { stream, limit }, SystemTime::UNIX_EPOCH);
                }
                Some(Ok(Some(bytes)))
            })
            .await
    }
}

impl<E: Runtime> Drop for SimRecv<E> {
    fn drop(&mut self) {
        let mut state = self.0.stream.state.lock();
        let half = &mut state.halves[self.half()];
        if half.ended.is_some() || half.left {
            return;
        }
        half.left = true;
        half.unread.clear();
        self.0.send(LinkMessage::Stopped { stream: self.0.stream.clone() }, SystemTime::UNIX_EPOCH);
        self.0.release(&mut state);
    }
}

//! Both ends of a simulated connection, and its handshake.

mod stream;

pub use stream::{SimRecv, SimSend};

use super::{Fabric, Pair, Runtime};
use crate::transport::{BACKLOG, Connection, Dial, Listen, MAX_STREAMS, TransportError, clipped};
use bytes::Bytes;
use commonware_utils::sync::Mutex;
use cowboy_engine::{
    primitives::{PublicKey, keccak256},
    session::heartbeat::Heartbeats,
    wire::HeartbeatKey,
};
use std::{
    collections::VecDeque,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::SystemTime,
};
use stream::Stream;
use tokio::sync::{Notify, futures::Notified};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Dialer,
    Listener,
}

impl Side {
    pub(super) const fn index(self) -> usize {
        match self {
            Self::Dialer => 0,
            Self::Listener => 1,
        }
    }

    pub(super) const fn other(self) -> Self {
        match self {
            Self::Dialer => Self::Listener,
            Self::Listener => Self::Dialer,
        }
    }
}

pub(super) enum LinkMessage {
    Connect,
    Accepted,
    Close {
        reason: String,
    },
    /// A stream that the receiver opened is over at the sender: the receiver may open another.
    Released,
    Data {
        stream: Arc<Stream>,
        bytes: Bytes,
    },
    /// The end of a stream: finished after all its bytes, or abandoned.
    End {
        stream: Arc<Stream>,
        finished: bool,
    },
    Acknowledged {
        stream: Arc<Stream>,
    },
    Stopped {
        stream: Arc<Stream>,
    },
    /// The writer of a stream may write up to this many bytes in total.
    Credit {
        stream: Arc<Stream>,
        limit: u64,
    },
}

/// The state of a connection, shared by both ends and the messages between them. It has no
/// reference to the network, which holds it.
pub(super) struct LinkCore {
    id: u64,
    keys: [PublicKey; 2],
    pair: Pair,
    ends: Mutex<[SimulatedEnd; 2]>,
    changed: [Notify; 2],
}

#[derive(Default)]
struct SimulatedEnd {
    established: bool,
    over: Option<TransportError>,
    /// Streams that the peer opened and this side has not accepted yet: at most [`MAX_STREAMS`].
    incoming: VecDeque<Arc<Stream>>,
    /// Number of streams that this side opened and the peer has not released.
    open: u32,
}

impl LinkCore {
    pub(super) fn new(id: u64, dialer: PublicKey, listener: PublicKey) -> Self {
        Self {
            id,
            pair: super::pair(&dialer, &listener),
            keys: [dialer, listener],
            ends: Mutex::default(),
            changed: [Notify::new(), Notify::new()],
        }
    }

    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    pub(super) const fn pair(&self) -> &Pair {
        &self.pair
    }

    /// Resolves at the next change for `side` after this call.
    pub(super) fn changed(&self, side: Side) -> Notified<'_> {
        self.changed[side.index()].notified()
    }

    /// Whether the handshake is complete; fails once the connection is over.
    pub(super) fn established(&self, side: Side) -> Result<bool, TransportError> {
        let end = &self.ends.lock()[side.index()];
        end.over.clone().map_or(Ok(end.established), Err)
    }

    /// Fails once the connection is over.
    pub(super) fn check(&self, side: Side) -> Result<(), TransportError> {
        self.established(side).map(|_| ())
    }

    /// Ends the connection at one side; false if it had already ended there.
    fn end(&self, side: Side, why: TransportError) -> bool {
        let end = &mut self.ends.lock()[side.index()];
        if end.over.is_some() {
            return false;
        }
        end.over = Some(why);
        self.changed[side.index()].notify_waiters();
        true
    }

    fn close<E: Runtime>(self: &Arc<Self>, fabric: &Fabric<E>, side: Side, reason: &str) {
        if self.end(side, TransportError::Closed) {
            let reason = clipped(reason).to_owned();
            fabric.send(self, side, LinkMessage::Close { reason }, SystemTime::UNIX_EPOCH);
        }
    }

    pub(super) fn lose(&self, reason: &str) {
        for side in [Side::Dialer, Side::Listener] {
            self.end(side, TransportError::Lost { reason: reason.to_owned() });
        }
    }

    pub(super) fn receive<E: Runtime>(
        self: &Arc<Self>,
        fabric: &Fabric<E>,
        to: Side,
        message: LinkMessage,
    ) {
        if let LinkMessage::Close { reason } = message {
            self.end(to, TransportError::ClosedByPeer { reason });
            fabric.forget(self);
            return;
        }
        if self.check(to).is_err() {
            return;
        }
        match message {
            LinkMessage::Close { .. } => {}
            LinkMessage::Connect => self.admit(fabric),
            LinkMessage::Accepted => {
                self.ends.lock()[to.index()].established = true;
                self.changed[to.index()].notify_waiters();
            }
            LinkMessage::Released => {
                self.ends.lock()[to.index()].open -= 1;
                self.changed[to.index()].notify_waiters();
            }
            LinkMessage::Data { stream, bytes } => {
                self.announce(to, &stream);
                stream.arrived(to, bytes);
            }
            LinkMessage::End { stream, finished } => {
                self.announce(to, &stream);
                stream.ended(fabric, self, to, finished);
            }
            LinkMessage::Stopped { stream } => {
                self.announce(to, &stream);
                stream.stopped(fabric, self, to);
            }
            LinkMessage::Acknowledged { stream } => stream.acknowledged(fabric, self, to),
            LinkMessage::Credit { stream, limit } => stream.credited(to, limit),
        }
    }

    /// Handles a dialler's request: queues it for the listener, closes it if the queue is full, and
    /// leaves it unanswered if there is no listener.
    fn admit<E: Runtime>(self: &Arc<Self>, fabric: &Fabric<E>) {
        let Some(backlog) = fabric.net.lock().listeners.get(&self.keys[1]).cloned() else { return };
        let mut waiting = backlog.waiting.lock();
        if waiting.len() >= BACKLOG {
            drop(waiting);
            self.close(fabric, Side::Listener, "the listener's queue is full");
            return;
        }
        self.ends.lock()[Side::Listener.index()].established = true;
        waiting.push_back(self.clone());
        drop(waiting);
        backlog.changed.notify_waiters();
        fabric.send(self, Side::Listener, LinkMessage::Accepted, SystemTime::UNIX_EPOCH);
    }

    /// Makes a stream that the peer opened acceptable with its first message.
    fn announce(&self, to: Side, stream: &Arc<Stream>) {
        if stream.announce(to) {
            self.ends.lock()[to.index()].incoming.push_back(stream.clone());
            self.changed[to.index()].notify_waiters();
        }
    }
}

/// One side's reference to a connection, shared by its handles and streams: dropping the last one
/// closes the connection.
pub(super) struct Hold<E: Runtime> {
    pub(super) fabric: Fabric<E>,
    pub(super) core: Arc<LinkCore>,
    pub(super) side: Side,
}

impl<E: Runtime> Drop for Hold<E> {
    fn drop(&mut self) {
        self.core.close(&self.fabric, self.side, "");
    }
}

/// A simulated connection.
pub struct SimConnection<E: Runtime>(Arc<Hold<E>>);

impl<E: Runtime> Clone for SimConnection<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E: Runtime> SimConnection<E> {
    pub(super) fn new(fabric: Fabric<E>, core: Arc<LinkCore>, side: Side) -> Self {
        Self(Arc::new(Hold { fabric, core, side }))
    }

    fn streams(&self, stream: Arc<Stream>) -> (SimSend<E>, SimRecv<E>) {
        (SimSend::new(self.0.clone(), stream.clone()), SimRecv::new(self.0.clone(), stream))
    }
}

impl<E: Runtime> Connection for SimConnection<E> {
    type Send = SimSend<E>;
    type Recv = SimRecv<E>;

    fn peer(&self) -> &PublicKey {
        &self.0.core.keys[self.0.side.other().index()]
    }

    fn remote(&self) -> IpAddr {
        Fabric::<E>::address(self.peer())
    }

    /// Nothing here keeps a secret, so the key only has to differ between connections.
    fn heartbeats(&self) -> Heartbeats {
        Heartbeats::Keyed(HeartbeatKey(keccak256(&[&self.0.core.id.to_be_bytes()]).0))
    }

    async fn open(&self) -> Result<(SimSend<E>, SimRecv<E>), TransportError> {
        let Hold { core, side, .. } = &*self.0;
        loop {
            let changed = core.changed(*side);
            core.check(*side)?;
            {
                let open = &mut core.ends.lock()[side.index()].open;
                if *open < MAX_STREAMS {
                    *open += 1;
                    return Ok(self.streams(Arc::new(Stream::new(*side))));
                }
            }
            changed.await;
        }
    }

    async fn accept(&self) -> Result<(SimSend<E>, SimRecv<E>), TransportError> {
        let Hold { core, side, .. } = &*self.0;
        loop {
            let changed = core.changed(*side);
            let stream = core.ends.lock()[side.index()].incoming.pop_front();
            if let Some(stream) = stream {
                return Ok(self.streams(stream));
            }
            core.check(*side)?;
            changed.await;
        }
    }

    fn close(&self, reason: &str) {
        self.0.core.close(&self.0.fabric, self.0.side, reason);
    }

    async fn closed(&self) {
        loop {
            let changed = self.0.core.changed(self.0.side);
            if self.0.core.check(self.0.side).is_err() {
                return;
            }
            changed.await;
        }
    }
}

#[derive(Default)]
pub(super) struct Backlog {
    waiting: Mutex<VecDeque<Arc<LinkCore>>>,
    changed: Notify,
}

/// A node that listens.
pub struct SimListener<E: Runtime> {
    fabric: Fabric<E>,
    node: PublicKey,
    backlog: Arc<Backlog>,
    closed: bool,
}

impl<E: Runtime> SimListener<E> {
    pub(super) const fn new(fabric: Fabric<E>, node: PublicKey, backlog: Arc<Backlog>) -> Self {
        Self { fabric, node, backlog, closed: false }
    }
}

impl<E: Runtime> Listen for SimListener<E> {
    type Connection = SimConnection<E>;

    async fn accept(&mut self) -> Option<SimConnection<E>> {
        loop {
            let changed = self.backlog.changed.notified();
            if self.closed {
                return None;
            }
            let next = self.backlog.waiting.lock().pop_front();
            if let Some(core) = next {
                return Some(SimConnection::new(self.fabric.clone(), core, Side::Listener));
            }
            changed.await;
        }
    }

    fn close(&mut self, reason: &str) {
        if self.closed {
            return;
        }
        self.closed = true;
        let mut net = self.fabric.net.lock();
        net.listeners.remove(&self.node);
        let own: Vec<_> = net
            .routes
            .values()
            .filter(|route| route.core.keys[Side::Listener.index()] == self.node)
            .map(|route| route.core.clone())
            .collect();
        drop(net);
        for core in own {
            core.close(&self.fabric, Side::Listener, reason);
        }
    }
}

impl<E: Runtime> Drop for SimListener<E> {
    fn drop(&mut self) {
        self.close("");
    }
}

/// A node that connects to listeners.
pub struct SimDialer<E> {
    fabric: Fabric<E>,
    node: PublicKey,
}

impl<E> Clone for SimDialer<E> {
    fn clone(&self) -> Self {
        Self { fabric: self.fabric.clone(), node: self.node.clone() }
    }
}

impl<E> SimDialer<E> {
    pub(super) const fn new(fabric: Fabric<E>, node: PublicKey) -> Self {
        Self { fabric, node }
    }
}

impl<E: Runtime> Dial for SimDialer<E> {
    type Connection = SimConnection<E>;

    async fn dial(
        &self,
        _: SocketAddr,
        expected: &PublicKey,
    ) -> Result<SimConnection<E>, TransportError> {
        self.fabric.connect(self.node.clone(), expected.clone()).await
    }
}

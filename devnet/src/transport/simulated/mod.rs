//! Connections in memory, on commonware's deterministic runtime.
//!
//! A [`Fabric`] joins any number of nodes, each identified by its on-chain key, over links with a
//! latency, a jitter and a loss. To the protocol above it behaves like [`quic`](super::quic):
//!
//! * A message is the bytes of one write, or one step of the connection itself (end of a stream,
//!   credit, close). It arrives after the link's latency plus a uniform share of the jitter; a lost
//!   one is sent again, which takes the greater of two more latencies and [`MIN_RETRANSMISSION`].
//!   Order is kept within a stream only.
//! * A cut link holds back its messages. If it is restored in time, everything arrives and
//!   connections survive; after [`IDLE_TIMEOUT`] they are lost at both ends. Dialling over it fails
//!   after [`DIAL_TIMEOUT`].
//! * A writer waits while [`STREAM_WINDOW`] bytes are unread, an opener while [`MAX_STREAMS`]
//!   streams are open; credit travels back over the link.
//!
//! Bandwidth is not modelled. Each random draw comes from the context's generator in the order of
//! sending, and every table is iterated in the order of its keys: the same seed gives the same run.
//!
//! [`STREAM_WINDOW`]: super::STREAM_WINDOW
//! [`MAX_STREAMS`]: super::MAX_STREAMS

mod connection;
#[cfg(test)]
mod tests;

pub use connection::{SimConnection, SimDialer, SimListener, SimRecv, SimSend};

use super::{DIAL_TIMEOUT, IDLE_TIMEOUT, TransportError};
use commonware_runtime::{Clock, Spawner};
use commonware_utils::sync::Mutex;
use connection::{Backlog, LinkCore, LinkMessage, Side};
use cowboy_engine::primitives::PublicKey;
use futures::future;
use rand::Rng;
use std::{
    collections::{BTreeMap, VecDeque},
    net::{IpAddr, Ipv6Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::sync::Notify;

/// The minimum time of a retransmission, however short the link.
pub const MIN_RETRANSMISSION: Duration = Duration::from_millis(10);

/// The parts of the runtime's context that a fabric needs: a clock, tasks and randomness.
pub trait Runtime: Clock + Spawner + Rng {}

impl<E: Clock + Spawner + Rng> Runtime for E {}

/// The properties of the path between two nodes, the same in both directions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedLink {
    /// The minimum time that a message takes.
    pub latency: Duration,
    /// The maximum addition to the latency, drawn uniformly.
    pub jitter: Duration,
    /// The share of messages that have to be sent twice, from 0 to 1.
    pub loss: f64,
}

/// The network between the nodes. Clones share it.
///
/// Messages travel for as long as the task that created the fabric runs.
pub struct Fabric<E> {
    net: Arc<Mutex<Net<E>>>,
    earlier: Arc<Notify>,
}

impl<E> Clone for Fabric<E> {
    fn clone(&self) -> Self {
        Self { net: self.net.clone(), earlier: self.earlier.clone() }
    }
}

/// Two nodes, with the lesser key first.
type Pair = (PublicKey, PublicKey);

fn pair(a: &PublicKey, b: &PublicKey) -> Pair {
    if a <= b { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) }
}

struct Net<E> {
    context: E,
    standard: SimulatedLink,
    /// Links that differ from the standard.
    links: BTreeMap<Pair, SimulatedLink>,
    /// Links that are cut, each with the number of its cut.
    cuts: BTreeMap<Pair, u64>,
    listeners: BTreeMap<PublicKey, Arc<Backlog>>,
    /// Connections that are not over at both ends.
    routes: BTreeMap<u64, LinkRoute>,
    /// Scheduled events by time, then in the order in which they were scheduled.
    agenda: BTreeMap<(SystemTime, u64), LinkEvent>,
    /// Number of connections, cuts and events so far, which gives each its number.
    count: u64,
}

struct LinkRoute {
    core: Arc<LinkCore>,
    /// By sender: the earliest arrival time of the next message, so that held-back messages go
    /// first.
    floor: [SystemTime; 2],
    /// By sender: messages held back by a cut link. Bounded by windows and stream limits.
    held: [VecDeque<LinkMessage>; 2],
}

enum LinkEvent {
    Arrival {
        core: Arc<LinkCore>,
        to: Side,
        message: LinkMessage,
    },
    /// A link that is still in this cut has been silent for [`IDLE_TIMEOUT`].
    Silence {
        cut: u64,
    },
}

impl<E: Runtime> Fabric<E> {
    /// Creates a network in which every link is `standard` unless set otherwise.
    pub fn new(context: E, standard: SimulatedLink) -> Self {
        let fabric = Self {
            net: Arc::new(Mutex::new(Net {
                context: context.child("links"),
                standard,
                links: BTreeMap::new(),
                cuts: BTreeMap::new(),
                listeners: BTreeMap::new(),
                routes: BTreeMap::new(),
                agenda: BTreeMap::new(),
                count: 0,
            })),
            earlier: Arc::new(Notify::new()),
        };
        let driven = fabric.clone();
        context.child("fabric").spawn(move |context| driven.run(context));
        fabric
    }

    /// A node's address as others see it, derived from its key: an IPv6 address in the range for
    /// local use.
    pub fn address(node: &PublicKey) -> IpAddr {
        let mut octets = [0xfd; 16];
        // The first byte of a compressed key is its point's parity.
        octets[1..].copy_from_slice(&node.as_bytes()[1..16]);
        Ipv6Addr::from(octets).into()
    }

    /// Listens as `node`, which must not be listening.
    pub fn listen(&self, node: PublicKey) -> Result<SimListener<E>, TransportError> {
        let backlog = Arc::new(Backlog::default());
        let mut net = self.net.lock();
        if net.listeners.contains_key(&node) {
            return Err(TransportError::Bind {
                address: SocketAddr::new(Self::address(&node), 0),
                reason: "the node is listening already".to_owned(),
            });
        }
        net.listeners.insert(node.clone(), backlog.clone());
        drop(net);
        Ok(SimListener::new(self.clone(), node, backlog))
    }

    pub fn dialer(&self, node: PublicKey) -> SimDialer<E> {
        SimDialer::new(self.clone(), node)
    }

    pub async fn connect(
        &self,
        from: PublicKey,
        to: PublicKey,
    ) -> Result<SimConnection<E>, TransportError> {
        let address = SocketAddr::new(Self::address(&to), 0);
        let Some(core) = self.route(from, to) else {
            self.sleep(DIAL_TIMEOUT).await;
            return Err(TransportError::ConnectTimeout { address, after: DIAL_TIMEOUT });
        };
        let connection = SimConnection::new(self.clone(), core.clone(), Side::Dialer);
        self.send(&core, Side::Dialer, LinkMessage::Connect, SystemTime::UNIX_EPOCH);
        let mut deadline = pin!(self.sleep(DIAL_TIMEOUT));
        loop {
            let changed = core.changed(Side::Dialer);
            match core.established(Side::Dialer) {
                Ok(true) => return Ok(connection),
                Ok(false) => {}
                Err(error) => {
                    return Err(TransportError::Connect { address, reason: error.to_string() });
                }
            }
            if let future::Either::Right(_) = future::select(pin!(changed), &mut deadline).await {
                return Err(TransportError::ConnectTimeout { address, after: DIAL_TIMEOUT });
            }
        }
    }

    /// Messages in flight are not affected.
    pub fn set_link(&self, a: &PublicKey, b: &PublicKey, link: SimulatedLink) {
        self.net.lock().links.insert(pair(a, b), link);
    }

    /// Cuts the link between `a` and `b`. Messages in flight still arrive.
    pub fn cut(&self, a: &PublicKey, b: &PublicKey) {
        let pair = pair(a, b);
        let mut net = self.net.lock();
        if net.cuts.contains_key(&pair) {
            return;
        }
        net.count += 1;
        let cut = net.count;
        net.cuts.insert(pair, cut);
        let at = net.context.current() + IDLE_TIMEOUT;
        self.schedule(&mut net, at, LinkEvent::Silence { cut });
    }

    /// Restores the link between `a` and `b` and sends the messages held back.
    pub fn restore(&self, a: &PublicKey, b: &PublicKey) {
        let pair = pair(a, b);
        let mut net = self.net.lock();
        if net.cuts.remove(&pair).is_none() {
            return;
        }
        let mut held = Vec::new();
        for route in net.routes.values_mut().filter(|route| *route.core.pair() == pair) {
            for from in [Side::Dialer, Side::Listener] {
                let messages = std::mem::take(&mut route.held[from.index()]);
                held.extend(
                    messages.into_iter().map(|message| (route.core.clone(), from, message)),
                );
            }
        }
        for (core, from, message) in held {
            let at = self.dispatch(&mut net, &core, from, message, SystemTime::UNIX_EPOCH);
            if let Some(route) = net.routes.get_mut(&core.id()) {
                route.floor[from.index()] = at;
            }
        }
    }

    /// Registers a connection with the network; `None` if the link is cut.
    fn route(&self, from: PublicKey, to: PublicKey) -> Option<Arc<LinkCore>> {
        let mut net = self.net.lock();
        if net.cuts.contains_key(&pair(&from, &to)) {
            return None;
        }
        net.count += 1;
        let id = net.count;
        let core = Arc::new(LinkCore::new(id, from, to));
        let floor = [SystemTime::UNIX_EPOCH; 2];
        net.routes.insert(id, LinkRoute { core: core.clone(), floor, held: Default::default() });
        Some(core)
    }

    /// Sends a message that arrives no earlier than `after`, and returns its arrival time. A
    /// message of a connection that is over at both ends is dropped.
    fn send(
        &self,
        core: &Arc<LinkCore>,
        from: Side,
        message: LinkMessage,
        after: SystemTime,
    ) -> SystemTime {
        let mut net = self.net.lock();
        let cut = net.cuts.contains_key(core.pair());
        match net.routes.get_mut(&core.id()) {
            None => after,
            Some(route) if cut => {
                route.held[from.index()].push_back(message);
                after
            }
            Some(_) => self.dispatch(&mut net, core, from, message, after),
        }
    }

    /// Sends a message over a link that is not cut.
    fn dispatch(
        &self,
        net: &mut Net<E>,
        core: &Arc<LinkCore>,
        from: Side,
        message: LinkMessage,
        after: SystemTime,
    ) -> SystemTime {
        let floor = net.routes.get(&core.id()).map_or(after, |route| route.floor[from.index()]);
        let at = (net.context.current() + net.delay(core.pair())).max(after).max(floor);
        self.schedule(
            net,
            at,
            LinkEvent::Arrival { core: core.clone(), to: from.other(), message },
        );
        at
    }

    fn schedule(&self, net: &mut Net<E>, at: SystemTime, event: LinkEvent) {
        net.count += 1;
        if net.agenda.first_key_value().is_none_or(|((first, _), _)| at < *first) {
            self.earlier.notify_one();
        }
        net.agenda.insert((at, net.count), event);
    }

    /// Removes a connection that is over at both ends.
    fn forget(&self, core: &LinkCore) {
        self.net.lock().routes.remove(&core.id());
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + use<E> {
        self.net.lock().context.sleep(duration)
    }

    async fn run(self, context: E) {
        loop {
            let next = self.net.lock().agenda.first_key_value().map(|((at, _), _)| *at);
            match next {
                Some(at) if at <= context.current() => {
                    let event = self.net.lock().agenda.pop_first().map(|(_, event)| event);
                    match event {
                        Some(LinkEvent::Arrival { core, to, message }) => {
                            core.receive(&self, to, message);
                        }
                        Some(LinkEvent::Silence { cut }) => self.silence(cut),
                        None => {}
                    }
                }
                Some(at) => {
                    let earlier = pin!(self.earlier.notified());
                    future::select(pin!(context.sleep_until(at)), earlier).await;
                }
                None => self.earlier.notified().await,
            }
        }
    }

    /// Ends the connections over a link if it is still in this cut.
    fn silence(&self, cut: u64) {
        let net = &mut *self.net.lock();
        let Some((pair, _)) = net.cuts.iter().find(|(_, current)| **current == cut) else { return };
        let lost = net.routes.extract_if(.., |_, route| route.core.pair() == pair);
        for (_, route) in lost {
            route.core.lose("timed out");
        }
    }
}

impl<E: Rng> Net<E> {
    fn delay(&mut self, pair: &Pair) -> Duration {
        let link = self.links.get(pair).copied().unwrap_or(self.standard);
        if link.jitter.is_zero() && link.loss <= 0.0 {
            return link.latency;
        }
        let draw = self.context.next_u64();
        // Both halves of the draw are fractions of 2^32.
        let (jitter, loss) = (draw >> 32, draw & 0xffff_ffff);
        let mut delay = link.latency + share(link.jitter, jitter);
        if (loss as f64) < link.loss * (1u64 << 32) as f64 {
            delay += (2 * link.latency).max(MIN_RETRANSMISSION);
        }
        delay
    }
}

/// `of_2_32` / 2^32 of a duration.
fn share(duration: Duration, of_2_32: u64) -> Duration {
    let nanos = (duration.as_nanos() * u128::from(of_2_32)) >> 32;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

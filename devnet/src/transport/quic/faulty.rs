//! A UDP socket that loses and delays datagrams according to the devnet's faults.
//!
//! Each node applies the faults of the link from itself to the node at the destination's address.
//! Both ends of a link do so, so this covers both directions. What comes from a node that another
//! process runs, which has no tap, is lost and delayed here ([`inbox`]). QUIC sees what it would
//! see on a real network, including its own retransmissions, keep-alives and timeouts.

mod inbox;
#[cfg(test)]
mod tests;

use self::inbox::Inbox;
use crate::faults::{Decision, Delayed, PeerSeat, Tally, Tap};
use commonware_utils::sync::Mutex;
use quinn::{
    AsyncUdpSocket, UdpPoller,
    udp::{EcnCodepoint, RecvMeta, Transmit},
};
use std::{
    convert::Infallible,
    fmt, io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    select,
    sync::{Notify, oneshot},
    time::{Instant, sleep_until, timeout},
};

/// The time that a delayed datagram waits for a full socket before it is lost.
const WRITABLE_TIMEOUT: Duration = Duration::from_secs(1);

/// A node's socket behind its tap. The node is registered at its address while the socket is open.
pub(super) struct Faulty {
    socket: Arc<dyn AsyncUdpSocket>,
    seat: PeerSeat,
    tap: Tap,
    queue: Arc<Queue>,
    inbox: Inbox,
    /// Dropped with the socket's last user, so that its port can be bound again at once: quinn
    /// drops sockets in background tasks.
    _in_use: oneshot::Sender<Infallible>,
}

#[derive(Default)]
struct Queue {
    /// Datagrams are waiting, and a task handles them.
    busy: AtomicBool,
    delayed: Mutex<Delayed<SocketAddr, Instant, Datagram>>,
    /// Notified when a new datagram is due before all others.
    sooner: Notify,
}

struct Datagram {
    destination: SocketAddr,
    ecn: Option<EcnCodepoint>,
    src_ip: Option<IpAddr>,
    contents: Vec<u8>,
}

impl Datagram {
    fn transmit(&self) -> Transmit<'_> {
        let Self { destination, ecn, src_ip, contents } = self;
        let (destination, ecn, src_ip) = (*destination, *ecn, *src_ip);
        Transmit { destination, ecn, contents, segment_size: None, src_ip }
    }
}

impl Faulty {
    pub(super) fn new(
        socket: Arc<dyn AsyncUdpSocket>,
        address: SocketAddr,
        tap: Tap,
        in_use: oneshot::Sender<Infallible>,
    ) -> Self {
        let seat = PeerSeat::Udp(address);
        tap.sit(seat.clone());
        Self { socket, seat, tap, queue: Arc::default(), inbox: Inbox::default(), _in_use: in_use }
    }

    fn send_one(&self, part: &Transmit<'_>) -> io::Result<()> {
        let now = Instant::now();
        match self.tap.outgoing(&PeerSeat::Udp(part.destination)) {
            Decision::Drop => Ok(()),
            Decision::Pass if !self.queue.delayed.lock().holds_up(&part.destination, now) => {
                match self.socket.try_send(part) {
                    // Other datagrams of the batch may be on their way, so the batch must not be
                    // sent again.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.delay(now, true, part, None);
                        Ok(())
                    }
                    sent => sent,
                }
            }
            Decision::Pass => {
                self.delay(now, true, part, None);
                Ok(())
            }
            Decision::Delay { by, ordered, tally } => {
                self.delay(now + by, ordered, part, Some(tally));
                Ok(())
            }
        }
    }

    fn delay(&self, due: Instant, ordered: bool, part: &Transmit<'_>, tally: Option<Arc<Tally>>) {
        let datagram = Datagram {
            destination: part.destination,
            ecn: part.ecn,
            src_ip: part.src_ip,
            contents: part.contents.to_vec(),
        };
        let size = datagram.contents.len();
        let mut delayed = self.queue.delayed.lock();
        delayed.push(part.destination, due, ordered, (datagram, size), tally);
        if !self.queue.busy.swap(true, Ordering::Relaxed) {
            let (queue, socket) = (self.queue.clone(), Arc::downgrade(&self.socket));
            tokio::spawn(forward(queue, socket, self.tap.clone()));
        }
        self.queue.sooner.notify_one();
    }
}

/// Sends waiting datagrams when they are due, until none are left or the socket is gone.
async fn forward(queue: Arc<Queue>, socket: Weak<dyn AsyncUdpSocket>, tap: Tap) {
    loop {
        let (datagram, next) = {
            let mut delayed = queue.delayed.lock();
            let datagram = delayed.pop(Instant::now());
            if datagram.is_none() && delayed.is_empty() {
                queue.busy.store(false, Ordering::Relaxed);
                return;
            }
            (datagram, delayed.next_due())
        };
        let (Some(socket), false) = (socket.upgrade(), tap.is_silenced()) else { return };
        if let Some(datagram) = datagram {
            send_when_writable(&socket, &datagram).await;
        } else if let Some(due) = next {
            drop(socket);
            select! {
                () = sleep_until(due) => {}
                () = queue.sooner.notified() => {}
            }
        }
    }
}

async fn send_when_writable(socket: &Arc<dyn AsyncUdpSocket>, datagram: &Datagram) {
    let mut poller = socket.clone().create_io_poller();
    let sent = async {
        loop {
            match socket.try_send(&datagram.transmit()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let writable = |cx: &mut Context<'_>| poller.as_mut().poll_writable(cx);
                    if std::future::poll_fn(writable).await.is_err() {
                        return;
                    }
                }
                // An error loses the datagram, as UDP may lose any.
                Ok(()) | Err(_) => return,
            }
        }
    };
    let _ = timeout(WRITABLE_TIMEOUT, sent).await;
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.tap.leave(&self.seat);
    }
}

impl AsyncUdpSocket for Faulty {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.socket.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if self.tap.is_silenced() {
            return Ok(());
        }
        if self.tap.is_quiet() && !self.queue.busy.load(Ordering::Relaxed) {
            return self.socket.try_send(transmit);
        }
        // A batch has datagrams of one size, except maybe the last; each is lost or delayed
        // independently.
        let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        for contents in transmit.contents.chunks(size) {
            let Transmit { destination, ecn, src_ip, .. } = *transmit;
            self.send_one(&Transmit { destination, ecn, contents, segment_size: None, src_ip })?;
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [io::IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inbox.poll(&*self.socket, &self.tap, context, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Faulty").field(&self.socket).finish()
    }
}

//! A network between validators that loses and delays messages as the devnet's faults require.
//!
//! Each validator applies the faults to what it receives. The sender learns nothing, as on a real
//! network: the message counts as sent.

#[cfg(test)]
mod tests;

use super::{
    channels::Endpoint,
    network::{EndpointOf, Network, NetworkError},
};
use crate::faults::{Decision, Delayed, PeerSeat, Tally, Tap};
use commonware_cryptography::ed25519::PublicKey;
use commonware_macros::select;
use commonware_p2p::{Message, Receiver};
use commonware_runtime::{Clock, IoBuf, Quota, Supervisor};
use std::{fmt, num::NonZeroUsize, sync::Arc, time::SystemTime};

/// A network behind a validator's tap.
pub struct Faulty<N> {
    pub network: N,
    pub tap: Tap,
}

impl<E: Clock + Supervisor, N: Network<E>> Network<E> for Faulty<N> {
    type Sender = N::Sender;
    type Receiver = FaultyReceiver<E, N::Receiver>;
    type Blocker = N::Blocker;
    type Peers = N::Peers;

    async fn connect(self, context: E, quota: Quota) -> Result<EndpointOf<E, Self>, NetworkError> {
        let Self { network, tap } = self;
        let clock = Arc::new(context.child("faults"));
        let Endpoint { channels, blocker, peers } = network.connect(context, quota).await?;
        let channels = channels.map_receivers(|receiver| FaultyReceiver {
            clock: clock.clone(),
            tap: tap.clone(),
            receiver,
            delayed: Delayed::default(),
        });
        Ok(Endpoint { channels, blocker, peers })
    }
}

/// One channel's receiver behind a validator's tap.
pub struct FaultyReceiver<E, R> {
    clock: Arc<E>,
    tap: Tap,
    receiver: R,
    delayed: Delayed<PublicKey, SystemTime, Message<PublicKey>>,
}

impl<E: Clock, R> FaultyReceiver<E, R> {
    /// Returns the message if it passes at once.
    fn admit(&mut self, (peer, bytes): Message<PublicKey>) -> Option<Message<PublicKey>> {
        if self.tap.is_quiet() && self.delayed.is_empty() {
            return Some((peer, bytes));
        }
        let now = self.clock.current();
        match self.tap.incoming(&seat(&peer)) {
            Decision::Drop => None,
            Decision::Pass if !self.delayed.holds_up(&peer, now) => Some((peer, bytes)),
            Decision::Pass => self.hold(now, true, (peer, bytes), None),
            Decision::Delay { by, ordered, tally } => {
                self.hold(now + by, ordered, (peer, bytes), Some(tally))
            }
        }
    }

    fn hold(
        &mut self,
        due: SystemTime,
        ordered: bool,
        (peer, bytes): (PublicKey, IoBuf),
        tally: Option<Arc<Tally>>,
    ) -> Option<Message<PublicKey>> {
        let length = bytes.as_ref().len();
        self.delayed.push(peer.clone(), due, ordered, ((peer, bytes), length), tally);
        None
    }
}

/// The seat by which the fault table knows a validator.
pub fn seat(validator: &PublicKey) -> PeerSeat {
    PeerSeat::Key(validator.as_ref().to_vec())
}

impl<E: Clock, R: Receiver<PublicKey = PublicKey>> Receiver for FaultyReceiver<E, R> {
    type Error = R::Error;
    type PublicKey = PublicKey;

    /// Cancel-safe: delayed messages stay in the receiver.
    async fn recv(&mut self) -> Result<Message<PublicKey>, R::Error> {
        loop {
            let Some(due) = self.delayed.next_due() else {
                let message = self.receiver.recv().await?;
                if let Some(message) = self.admit(message) {
                    return Ok(message);
                }
                continue;
            };
            if let Some(message) = self.delayed.pop(self.clock.current()) {
                return Ok(message);
            }
            select! {
                message = self.receiver.recv() => {
                    if let Some(message) = self.admit(message?) {
                        return Ok(message);
                    }
                },
                () = self.clock.sleep_until(due) => {},
            }
        }
    }

    fn capacity(&self) -> NonZeroUsize {
        self.receiver.capacity()
    }
}

impl<E, R: fmt::Debug> fmt::Debug for FaultyReceiver<E, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FaultyReceiver").field(&self.receiver).finish()
    }
}

//! Holds consensus back until the validator will be heard.
//!
//! Votes to an unconnected peer are lost, and losing the first view costs a leader timeout. Simplex
//! also gives up the view of a leader from whom it has never seen a vote, as soon as a quorum of
//! the others has voted. If half of the validators have seen a vote of the leader, no quorum
//! agrees, and the view costs a certification timeout. So every validator greets each other one
//! with a vote on view 0, which is over for all and only shows that the sender is there. It starts
//! voting when all others have greeted it and are about to start too, or when a quorum has and no
//! more came for [`GRACE`].
//!
//! This happens on start. When an epoch ends, all validators are connected, and each greets the
//! others once before it votes in the next ([`super::epochs`]).
//!
//! On start: send `HELLO` to all, again after 5 ms, with growing pauses up to [`SLOWEST`].
//! On `HELLO` from a peer: send it the greeting, then `HEARD`, or `READY` once all others have been
//! heard; also after the start_barrier has opened, for validators that start later.
//! On `HEARD` or `READY`: the connection works both ways, so count the peer.

use bytes::Bytes;
use commonware_macros::select;
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::Clock;
use commonware_utils::sync::Mutex;
use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// The maximum length of a message on the channel.
pub const MAX_MESSAGE: usize = 1;

const HELLO: &[u8] = b"?";
const HEARD: &[u8] = b".";
const READY: &[u8] = b"!";

/// Pause after the first announcement; connections on one machine take a few milliseconds.
const FASTEST: Duration = Duration::from_millis(5);
const SLOWEST: Duration = Duration::from_millis(250);
/// How long a validator waits for the rest after it has heard a quorum.
const GRACE: Duration = Duration::from_millis(300);

/// A vote on view 0 of the validator's current epoch, and its channel. Clones share it.
pub struct Greeting<V>(Arc<Mutex<Option<(V, Bytes)>>>);

impl<V> Clone for Greeting<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V: Sender> Greeting<V> {
    /// No greeting yet: the validator only listens.
    pub fn none() -> Self {
        Self(Arc::default())
    }

    /// Sets the greeting to `vote`, sent over `votes`; `None` if it has no vote in this epoch.
    pub fn set(&self, votes: V, vote: Option<Bytes>) {
        *self.0.lock() = vote.map(|vote| (votes, vote));
    }

    pub fn send(&self, whom: Recipients<V::PublicKey>) {
        if let Some((votes, vote)) = &mut *self.0.lock() {
            votes.send(whom, vote.clone(), true);
        }
    }
}

/// A validator's announcements.
pub struct StartBarrier<S: Sender, R, V> {
    sender: S,
    receiver: R,
    greeting: Greeting<V>,
    heard: BTreeSet<S::PublicKey>,
    ready: BTreeSet<S::PublicKey>,
    /// Whether all others have been heard, or the start_barrier has opened without them.
    all_heard: bool,
}

impl<S, R, V> StartBarrier<S, R, V>
where
    S: Sender,
    R: Receiver<PublicKey = S::PublicKey>,
    V: Sender<PublicKey = S::PublicKey>,
{
    pub fn new((sender, receiver): (S, R), greeting: Greeting<V>) -> Self {
        let (heard, ready) = (BTreeSet::new(), BTreeSet::new());
        Self { sender, receiver, greeting, heard, ready, all_heard: false }
    }

    /// Resolves once the `others`, the rest of the committee, are ready; or, after [`GRACE`], when
    /// `quorum` - 1 of them have been heard, which together with this validator are a quorum.
    pub async fn open<E: Clock>(
        &mut self,
        context: &E,
        others: &BTreeSet<S::PublicKey>,
        quorum: usize,
    ) {
        let mut pause = FASTEST;
        let mut grace: Option<SystemTime> = None;
        let mut announce = context.current();
        let among = |some: &BTreeSet<_>| some.intersection(others).count();
        while among(&self.ready) < others.len() {
            let now = context.current();
            if grace.is_some_and(|end| now >= end) {
                break;
            }
            if now >= announce {
                self.sender.send(Recipients::All, HELLO, true);
                announce = now + pause;
                pause = (pause * 2).min(SLOWEST);
            }
            select! {
                message = self.receiver.recv() => {
                    let Ok((peer, message)) = message else { return };
                    self.receive(peer, message.as_ref());
                    if among(&self.heard) + 1 >= quorum && grace.is_none() {
                        grace = Some(context.current() + GRACE);
                    }
                    if among(&self.heard) >= others.len() && !self.all_heard {
                        self.all_heard = true;
                        self.sender.send(Recipients::All, READY, true);
                    }
                },
                () = context.sleep_until(grace.map_or(announce, |end| end.min(announce))) => {},
            }
        }
        self.all_heard = true;
    }

    /// Answers validators that start later, until the network ends.
    pub async fn keep_answering(mut self) {
        while let Ok((peer, message)) = self.receiver.recv().await {
            self.receive(peer, message.as_ref());
        }
    }

    fn receive(&mut self, peer: S::PublicKey, message: &[u8]) {
        if message == HELLO {
            let to = Recipients::One(peer);
            self.greeting.send(to.clone());
            self.sender.send(to, if self.all_heard { READY } else { HEARD }, true);
            return;
        }
        if message == READY {
            self.ready.insert(peer.clone());
        }
        self.heard.insert(peer);
    }
}

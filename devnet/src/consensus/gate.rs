//! Holding consensus back until it will be heard.
//!
//! Votes to a peer that is not connected are lost, and a first view that is lost costs a leader
//! timeout. So every validator announces itself on a channel of its own and starts voting when
//! it has heard all others, or a quorum has been heard and no more came for [`GRACE`].
//!
//! Upon start: send `HELLO` to all, again after 5 ms, with growing pauses up to [`SLOWEST`].
//! Upon `HELLO` from a peer: count it; answer `HEARD`, also after the gate has opened, for those
//! who start later. Upon `HEARD`: count the peer.

use commonware_macros::select;
use commonware_p2p::{Receiver, Recipients, Sender};
use commonware_runtime::Clock;
use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

/// Longest message on the channel.
pub const MAX_MESSAGE: usize = 1;

const HELLO: &[u8] = b"?";
const HEARD: &[u8] = b"!";

/// Pause after the first announcement; connections on one machine take a few milliseconds.
const FASTEST: Duration = Duration::from_millis(5);
/// Longest pause between announcements.
const SLOWEST: Duration = Duration::from_millis(250);
/// How long a validator waits for the rest once a quorum has been heard.
const GRACE: Duration = Duration::from_millis(300);

/// A validator's announcements.
#[derive(Debug)]
pub struct Gate<S, R> {
    sender: S,
    receiver: R,
}

impl<S: Sender, R: Receiver<PublicKey = S::PublicKey>> Gate<S, R> {
    /// Announcements over a channel.
    pub fn new((sender, receiver): (S, R)) -> Self {
        Self { sender, receiver }
    }

    /// Resolves once the `others` validators have been heard, or, after a while, one less than
    /// `quorum` of them: with this one they are a quorum.
    pub async fn open<E: Clock>(&mut self, context: &E, others: usize, quorum: usize) {
        let mut heard = BTreeSet::new();
        let mut pause = FASTEST;
        let mut grace: Option<SystemTime> = None;
        let mut announce = context.current();
        while heard.len() < others {
            let now = context.current();
            if grace.is_some_and(|end| now >= end) {
                return;
            }
            if now >= announce {
                self.sender.send(Recipients::All, HELLO, true);
                announce = now + pause;
                pause = (pause * 2).min(SLOWEST);
            }
            select! {
                message = self.receiver.recv() => {
                    let Ok((peer, message)) = message else { return };
                    self.answer(&peer, message.as_ref());
                    heard.insert(peer);
                    if heard.len() + 1 >= quorum && grace.is_none() {
                        grace = Some(context.current() + GRACE);
                    }
                },
                () = context.sleep_until(grace.map_or(announce, |end| end.min(announce))) => {},
            }
        }
    }

    /// Answers those who start later, until the network ends.
    pub async fn keep_answering(mut self) {
        while let Ok((peer, message)) = self.receiver.recv().await {
            self.answer(&peer, message.as_ref());
        }
    }

    fn answer(&mut self, peer: &S::PublicKey, message: &[u8]) {
        if message == HELLO {
            self.sender.send(Recipients::One(peer.clone()), HEARD, true);
        }
    }
}

//! A queue of delayed messages.

use super::Tally;
use std::{collections::BTreeMap, sync::Arc};

/// Maximum number of waiting messages; beyond it the next due message is lost.
const MAX_MESSAGES: usize = 4_096;

/// Maximum bytes of all waiting messages together.
const MAX_DELAYED_BYTES: usize = 64 << 20;

/// Delayed messages, each due at a time `T`. Ordered messages from one sender (or to one receiver)
/// `K` keep their order.
#[derive(Debug)]
pub struct Delayed<K, T, M> {
    /// In the order of delivery; the number keeps messages due at the same time in order.
    waiting: BTreeMap<(T, u64), DelayedMessage<M>>,
    /// Per peer, the time until which ordered messages stay behind earlier ones.
    behind: BTreeMap<K, T>,
    bytes: usize,
    serial: u64,
}

#[derive(Debug)]
struct DelayedMessage<M> {
    message: M,
    bytes: usize,
    tally: Option<Arc<Tally>>,
}

impl<K: Ord, T: Ord + Copy, M> Default for Delayed<K, T, M> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), behind: BTreeMap::new(), bytes: 0, serial: 0 }
    }
}

impl<K: Ord, T: Ord + Copy, M> Delayed<K, T, M> {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether an undelayed message of this peer has to wait for delayed ones.
    pub fn holds_up(&self, peer: &K, now: T) -> bool {
        self.behind.get(peer).is_some_and(|end| *end > now)
    }

    /// Queues a message until `due` and, if it is `ordered`, until earlier messages of its peer
    /// have been delivered. `tally` counts the message if it is lost instead.
    pub fn push(
        &mut self,
        peer: K,
        due: T,
        ordered: bool,
        (message, bytes): (M, usize),
        tally: Option<Arc<Tally>>,
    ) {
        let due = match self.behind.get(&peer) {
            Some(end) if ordered => due.max(*end),
            _ => due,
        };
        if ordered {
            self.behind.insert(peer, due);
        }
        self.waiting.insert((due, self.serial), DelayedMessage { message, bytes, tally });
        self.serial += 1;
        self.bytes += bytes;
        while self.waiting.len() > MAX_MESSAGES || self.bytes > MAX_DELAYED_BYTES {
            let Some(lost) = self.take_first() else { break };
            if let Some(tally) = lost.tally {
                tally.drop_one();
            }
        }
    }

    pub fn next_due(&self) -> Option<T> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// Removes the next message that is due by `now`.
    pub fn pop(&mut self, now: T) -> Option<M> {
        self.next_due().filter(|due| *due <= now)?;
        self.take_first().map(|held| held.message)
    }

    fn take_first(&mut self) -> Option<DelayedMessage<M>> {
        let (_, held) = self.waiting.pop_first()?;
        self.bytes -= held.bytes;
        if self.waiting.is_empty() {
            self.behind.clear();
        }
        Some(held)
    }
}

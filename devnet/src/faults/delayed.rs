//! Messages that wait until they may go on.

use super::Tally;
use std::{collections::BTreeMap, sync::Arc};

/// Messages that wait at most; beyond that the one that is due next is lost.
const MAX_MESSAGES: usize = 4_096;

/// Their bytes at most, together.
const MAX_BYTES: usize = 64 << 20;

/// Messages on their way, each due at a time `T`. Those from one sender (or to one receiver) `K`
/// stay in order, but for those that are said not to.
#[derive(Debug)]
pub struct Delayed<K, T, M> {
    /// In the order in which they go on; the number keeps those due at the same time in order.
    waiting: BTreeMap<(T, u64), Held<M>>,
    /// Until when messages of a peer have to stay behind others.
    behind: BTreeMap<K, T>,
    bytes: usize,
    serial: u64,
}

#[derive(Debug)]
struct Held<M> {
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
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a message of this peer that is not delayed has to stay behind one that is.
    pub fn holds_up(&self, peer: &K, now: T) -> bool {
        self.behind.get(peer).is_some_and(|end| *end > now)
    }

    /// Lets a message wait until `due`, and, where it is `ordered`, until those of its peer before
    /// it have gone on. `tally` counts it if it is lost instead.
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
        self.waiting.insert((due, self.serial), Held { message, bytes, tally });
        self.serial += 1;
        self.bytes += bytes;
        while self.waiting.len() > MAX_MESSAGES || self.bytes > MAX_BYTES {
            let Some(lost) = self.take_first() else { break };
            if let Some(tally) = lost.tally {
                tally.drop_one();
            }
        }
    }

    /// When the next message may go on.
    pub fn next_due(&self) -> Option<T> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// The next message that may go on by now.
    pub fn pop(&mut self, now: T) -> Option<M> {
        self.next_due().filter(|due| *due <= now)?;
        self.take_first().map(|held| held.message)
    }

    fn take_first(&mut self) -> Option<Held<M>> {
        let (_, held) = self.waiting.pop_first()?;
        self.bytes -= held.bytes;
        if self.waiting.is_empty() {
            self.behind.clear();
        }
        Some(held)
    }
}

//! Places for event streams: their number, their assignment and their replacement.
//!
//! On the loopback only the token tells clients apart. So there are two groups of streams: streams
//! with a token in their request, and all others. A new stream always gets a place:
//!
//! * A group has at most three quarters of the places. When it is full, the new stream replaces one
//!   of its own group.
//! * Otherwise, if a place is free, it takes that place.
//! * Otherwise it replaces a stream of the larger group, or of its own group if both are equally
//!   large.
//!
//! Within the group, the new stream replaces the one with the client that has not read for the
//! longest time, as far as this is visible: the system buffers some megabytes for a client before a
//! write blocks. If no write blocks, it replaces the oldest stream.
//!
//! So a group can always have a quarter of the places, and loses none to the other group unless it
//! has more than a quarter.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

pub(super) struct Streams {
    limit: usize,
    open: Mutex<OpenStreams>,
}

#[derive(Default)]
struct OpenStreams {
    next: u64,
    /// Keyed in the order in which they began.
    streams: BTreeMap<u64, Stream>,
}

struct Stream {
    known: bool,
    /// When its client stopped reading, as a number that only orders streams; `None` means that the
    /// client reads, or that the system still buffers for it.
    stalled: Box<dyn Fn() -> Option<u64> + Send + Sync>,
    go: Arc<Notify>,
}

/// A stream's place, which becomes free again on drop.
pub(super) struct StreamPlace {
    streams: Arc<Streams>,
    number: u64,
    go: Arc<Notify>,
}

impl Streams {
    /// Creates `limit` places, at least one.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, OpenStreams> {
        // Nothing panics while it holds the lock.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a stream of this group. A stream that it replaces loses its place at once.
    pub(super) fn take(
        self: &Arc<Self>,
        known: bool,
        stalled: impl Fn() -> Option<u64> + Send + Sync + 'static,
    ) -> StreamPlace {
        let mut open = self.open();
        let (own, other) = (open.count(known), open.count(!known));
        if own >= self.limit - self.limit / 4 {
            open.replace(known);
        } else if own + other >= self.limit {
            open.replace(if other > own { !known } else { known });
        }
        let (number, go) = (open.next, Arc::new(Notify::new()));
        open.next += 1;
        open.streams.insert(number, Stream { known, stalled: Box::new(stalled), go: go.clone() });
        StreamPlace { streams: self.clone(), number, go }
    }
}

impl OpenStreams {
    fn count(&self, known: bool) -> usize {
        self.streams.values().filter(|stream| stream.known == known).count()
    }

    fn replace(&mut self, known: bool) {
        let group = self.streams.iter().filter(|(_, stream)| stream.known == known);
        let goes = group.min_by_key(|(number, stream)| match (stream.stalled)() {
            Some(since) => (0, since),
            None => (1, **number),
        });
        let goes = goes.map(|(number, _)| *number);
        if let Some(stream) = goes.and_then(|number| self.streams.remove(&number)) {
            stream.go.notify_one();
        }
    }
}

impl StreamPlace {
    pub(super) async fn replaced(&self) {
        self.go.notified().await;
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.streams.open().streams.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    const READS: fn() -> Option<u64> = || None;

    fn is_replaced(place: &StreamPlace) -> bool {
        place.replaced().now_or_never().is_some()
    }

    /// The number of places replaced since they were last checked.
    fn replaced(places: &[StreamPlace]) -> usize {
        places.iter().filter(|place| is_replaced(place)).count()
    }

    #[test]
    fn who_does_not_read_goes_first_and_then_the_oldest() {
        let streams = Arc::new(Streams::new(4));
        // A group may have three places.
        let oldest = streams.take(false, READS);
        let long = streams.take(false, || Some(3));
        let longer = streams.take(false, || Some(2));
        let mut new = Vec::new();
        for goes in [&longer, &long, &oldest] {
            assert!(!is_replaced(goes));
            new.push(streams.take(false, READS));
            assert!(is_replaced(goes));
        }
        assert_eq!(replaced(&new), 0);
        // A replaced stream has no place to give back.
        drop((oldest, long, longer));
        let next = streams.take(false, READS);
        assert!(is_replaced(&new[0]) && !is_replaced(&next));
        drop(next);
        new.push(streams.take(false, READS));
        assert_eq!(replaced(&new), 0, "the place was free");
    }

    #[test]
    fn neither_group_takes_all_places() {
        for known in [false, true] {
            let streams = Arc::new(Streams::new(64));
            let flood: Vec<_> = (0..100).map(|_| streams.take(known, READS)).collect();
            assert_eq!(replaced(&flood), 100 - 48);
            // A quarter is left, and up to a half is taken back.
            let others: Vec<_> = (0..32).map(|_| streams.take(!known, READS)).collect();
            assert_eq!((replaced(&flood), replaced(&others)), (16, 0));
            let more: Vec<_> = (0..100).map(|_| streams.take(known, READS)).collect();
            assert_eq!((replaced(&others), replaced(&flood) + replaced(&more)), (0, 100));
            let _one_more = streams.take(!known, READS);
            assert_eq!((replaced(&others), replaced(&more)), (1, 0));
        }
    }
}

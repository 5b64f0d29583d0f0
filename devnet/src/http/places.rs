//! Places for connections: so many at a time, and whose turn it is to go.
//!
//! A connection *waits* while the server waits for its client: for the head of a request, for the
//! body, or for the client to read an answer. It waits since the client's last progress. A newcomer
//! gets a free place, else that of the connection which has waited longest. A connection whose
//! request is being worked on, or whose answer is being read, does not wait, nor does a new one
//! before the server has looked for its first request. While none waits, a newcomer *wants* a
//! place: connections are to end with their next answers, so that clients who always have another
//! request keep no one out.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::Notify;

/// The places of a server.
pub(super) struct Places {
    limit: usize,
    taken: Mutex<Taken>,
    /// Told when a place may be had.
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    /// Numbers the moments in which a place was taken, or a client made progress.
    next: u64,
    /// A newcomer wants a place, and no connection waits.
    wanted: bool,
    /// By the moment it was taken in.
    places: BTreeMap<u64, State>,
    /// Those that wait, by the moment of their last progress: which they are, and whom to tell to
    /// go.
    waiting: BTreeMap<u64, (u64, Arc<Notify>)>,
}

#[derive(Default)]
struct State {
    /// Requests that have come whole and whose answer is not written.
    requests: u32,
    /// No read has found yet that the client has sent nothing more.
    new: bool,
    /// The client does not read.
    stalled: bool,
    /// It was told to go.
    told: bool,
    /// Its key among those that wait.
    since: Option<u64>,
}

/// A connection's place, free again when this is dropped.
pub(super) struct Place {
    seat: Arc<Seat>,
}

/// A request and its answer.
pub(super) struct Turn {
    seat: Arc<Seat>,
    begun: AtomicBool,
}

/// Tells whether the client of a connection reads: an extension of each request.
#[derive(Clone)]
pub struct Reader(Arc<Seat>);

/// Where a connection sits.
pub(super) struct Seat {
    places: Arc<Places>,
    number: u64,
    go: Arc<Notify>,
}

impl Places {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, taken: Mutex::default(), freed: Notify::new() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // Nothing panics while it holds the lock.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place: a free one, else that of the connection which has waited longest, as soon as one
    /// does. One caller at a time.
    pub(super) async fn take(self: &Arc<Self>) -> Place {
        // Whoever is told to go does: one is enough.
        let mut told = false;
        loop {
            let freed = self.freed.notified();
            {
                let mut taken = self.taken();
                if taken.places.len() < self.limit {
                    let number = taken.tick();
                    taken.places.insert(number, State { new: true, ..State::default() });
                    taken.wanted = false;
                    let seat = Seat { places: self.clone(), number, go: Arc::default() };
                    return Place { seat: Arc::new(seat) };
                }
                told = told || taken.evict();
                taken.wanted = !told;
            }
            freed.await;
        }
    }

    /// Has every connection go that waits.
    pub(super) fn clear_waiting(&self) {
        let mut taken = self.taken();
        while taken.evict() {}
    }
}

impl Taken {
    fn tick(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Tells the connection that has waited longest to go. Until it is gone it does not count as
    /// waiting any more, so it is told once.
    fn evict(&mut self) -> bool {
        let Some((_, (number, go))) = self.waiting.pop_first() else { return false };
        let state = self.places.get_mut(&number).expect("who waits has a place");
        (state.told, state.since) = (true, None);
        go.notify_one();
        true
    }

    /// Changes the state of a connection, which made progress. Whether it waits.
    fn update(&mut self, seat: &Seat, change: impl FnOnce(&mut State)) -> bool {
        let now = self.tick();
        // The connection may have ended before the last of its answer was dropped.
        let Some(state) = self.places.get_mut(&seat.number) else { return false };
        change(state);
        let idle = state.requests == 0 && !state.new;
        let waits = !state.told && (idle || state.stalled);
        let before = std::mem::replace(&mut state.since, waits.then_some(now));
        if let Some(before) = before {
            self.waiting.remove(&before);
        }
        if waits {
            self.waiting.insert(now, (seat.number, seat.go.clone()));
        }
        waits
    }
}

impl Seat {
    fn update(&self, change: impl FnOnce(&mut State)) {
        if self.places.taken().update(self, change) {
            self.places.freed.notify_one();
        }
    }

    /// The client reads, or does not.
    pub(super) fn stalled(&self, stalled: bool) {
        self.update(|state| state.stalled = stalled);
    }

    /// All has been read that the client has sent so far.
    pub(super) fn drained(&self) {
        self.update(|state| state.new = false);
    }

    /// Whether the connection is to end with its next answer.
    pub(super) fn is_wanted(&self) -> bool {
        self.places.taken().wanted
    }
}

impl Place {
    /// Resolves when another is to have the place.
    pub(super) async fn evicted(&self) {
        self.seat.go.notified().await;
    }

    /// The head of a request has come.
    pub(super) fn turn(&self) -> Turn {
        Turn { seat: self.seat.clone(), begun: AtomicBool::new(false) }
    }

    /// Whether its client reads.
    pub(super) fn reader(&self) -> Reader {
        Reader(self.seat.clone())
    }

    /// Where it is.
    pub(super) fn seat(&self) -> Arc<Seat> {
        self.seat.clone()
    }
}

impl Reader {
    /// Since when a write to the client waits, as a number that grows with time; `None`: none does.
    pub fn stalled(&self) -> Option<u64> {
        let taken = self.0.places.taken();
        let state = taken.places.get(&self.0.number).filter(|state| state.stalled)?;
        // One that was told to go has no time any more: it goes before all others.
        Some(state.since.unwrap_or(0))
    }
}

impl Turn {
    /// More of the body has come.
    pub(super) fn progress(&self) {
        self.seat.update(|_| ());
    }

    /// The request has come whole, or is answered without the rest: from here on the server works.
    pub(super) fn begin(&self) {
        if !self.begun.swap(true, Ordering::Relaxed) {
            self.seat.update(|state| state.requests += 1);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if *self.begun.get_mut() {
            self.seat.update(|state| state.requests -= 1);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.seat.places.taken();
        let state = taken.places.remove(&self.seat.number);
        if let Some(since) = state.and_then(|state| state.since) {
            taken.waiting.remove(&since);
        }
        drop(taken);
        self.seat.places.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[test]
    fn the_client_that_made_no_progress_for_longest_goes_first() {
        let places = Arc::new(Places::new(3));
        let take = || places.take().now_or_never();
        let stalled = |place: &Place| place.reader().stalled();
        let [uploads, drips, works] = [(); 3].map(|()| {
            let place = take().unwrap();
            place.seat().drained();
            place
        });
        let (upload, drip, work) = (uploads.turn(), drips.turn(), works.turn());
        work.begin();
        drip.progress();
        upload.progress();
        assert!(take().is_none());
        assert!(drips.evicted().now_or_never().is_some());
        assert!(uploads.evicted().now_or_never().is_none());
        assert!(take().is_none());
        assert!(uploads.evicted().now_or_never().is_some());
        // Whose request is worked on keeps the place, until the answer is not read.
        assert!(take().is_none());
        assert!(works.evicted().now_or_never().is_none());
        works.seat().stalled(true);
        works.seat().stalled(false);
        assert!(take().is_none());
        assert!(works.evicted().now_or_never().is_none());
        assert_eq!(stalled(&works), None);
        works.seat().stalled(true);
        assert!(stalled(&works) > Some(0));
        assert!(take().is_none());
        assert!(works.evicted().now_or_never().is_some());
        assert_eq!(stalled(&works), Some(0));
        drop(works);
        drop(work);
        assert!(take().is_some());
    }

    #[test]
    fn a_new_connection_keeps_its_place_until_its_request_has_been_looked_for() {
        let places = Arc::new(Places::new(1));
        let place = places.take().now_or_never().unwrap();
        assert!(places.take().now_or_never().is_none());
        assert!(place.evicted().now_or_never().is_none());
        place.seat().drained();
        assert!(places.take().now_or_never().is_none());
        assert!(place.evicted().now_or_never().is_some());
    }

    #[test]
    fn a_place_is_wanted_while_no_connection_waits() {
        let places = Arc::new(Places::new(1));
        let place = places.take().now_or_never().unwrap();
        place.seat().drained();
        let turn = place.turn();
        turn.begin();
        assert!(!place.seat().is_wanted());
        assert!(places.take().now_or_never().is_none());
        assert!(place.seat().is_wanted());
        drop(turn);
        assert!(places.take().now_or_never().is_none());
        assert!(!place.seat().is_wanted(), "this one goes");
        drop(place);
        let next = places.take().now_or_never().unwrap();
        assert!(!next.seat().is_wanted());
    }
}

//! Places for connections: their number, and the order in which connections are replaced.
//!
//! A connection *waits* while the server waits for its client: for the head of a request, for the
//! body, or for the client to read an answer. Its waiting time counts from the client's last
//! progress. A newcomer gets a free place, or else the place of the connection that has waited
//! longest. A connection does not wait while the server works on its request or the client reads
//! its answer, and a new one does not wait before the server has looked for its first request.
//! While no connection waits, a newcomer *wants* a place: then connections end with their next
//! answers, so that clients that always have another request cannot keep others out.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::Notify;

pub(super) struct Places {
    limit: usize,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    /// Numbers the moments when a place was taken or a client made progress.
    next: u64,
    /// Whether a newcomer wants a place while no connection waits.
    wanted: bool,
    /// By the moment when the place was taken.
    places: BTreeMap<u64, ConnectionState>,
    /// The waiting connections, by the moment of their last progress: their numbers, and their
    /// signals to go.
    waiting: BTreeMap<u64, (u64, Arc<Notify>)>,
}

#[derive(Default)]
struct ConnectionState {
    /// The number of complete requests whose answer is not written yet.
    requests: u32,
    /// Whether the server has not yet read everything that the client sent at first.
    new: bool,
    stalled: bool,
    told: bool,
    since: Option<u64>,
}

/// A connection's place, which becomes free again on drop.
pub(super) struct Place {
    seat: Arc<Seat>,
}

/// The server's work on a request, from its complete arrival to the end of its answer.
pub(super) struct Turn {
    seat: Arc<Seat>,
    begun: AtomicBool,
}

/// Shows whether the client of a connection reads; an extension of each request.
#[derive(Clone)]
pub struct Reader(Arc<Seat>);

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

    /// Takes a place: a free one, or else that of the connection that has waited longest, as soon
    /// as one waits. Only one caller at a time.
    pub(super) async fn take(self: &Arc<Self>) -> Place {
        // A connection that is told to go does go, so one is enough.
        let mut told = false;
        loop {
            let freed = self.freed.notified();
            {
                let mut taken = self.taken();
                if taken.places.len() < self.limit {
                    let number = taken.tick();
                    taken.places.insert(
                        number,
                        ConnectionState { new: true, ..ConnectionState::default() },
                    );
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

    /// Tells the connection that has waited longest to go. It no longer counts as waiting, so it is
    /// told only once.
    fn evict(&mut self) -> bool {
        let Some((_, (number, go))) = self.waiting.pop_first() else { return false };
        let state = self.places.get_mut(&number).expect("a waiting connection has a place");
        (state.told, state.since) = (true, None);
        go.notify_one();
        true
    }

    fn update(&mut self, seat: &Seat, change: impl FnOnce(&mut ConnectionState)) -> bool {
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
    fn update(&self, change: impl FnOnce(&mut ConnectionState)) {
        if self.places.taken().update(self, change) {
            self.places.freed.notify_one();
        }
    }

    pub(super) fn stalled(&self, stalled: bool) {
        self.update(|state| state.stalled = stalled);
    }

    /// The server has read everything that the client has sent so far.
    pub(super) fn drained(&self) {
        self.update(|state| state.new = false);
    }

    /// Whether the connection should end with its next answer.
    pub(super) fn is_wanted(&self) -> bool {
        self.places.taken().wanted
    }
}

impl Place {
    pub(super) async fn evicted(&self) {
        self.seat.go.notified().await;
    }

    pub(super) fn turn(&self) -> Turn {
        Turn { seat: self.seat.clone(), begun: AtomicBool::new(false) }
    }

    pub(super) fn reader(&self) -> Reader {
        Reader(self.seat.clone())
    }

    pub(super) fn seat(&self) -> Arc<Seat> {
        self.seat.clone()
    }
}

impl Reader {
    /// The moment since which a write to the client waits, as a number that grows with time; `None`
    /// if no write waits.
    pub fn stalled(&self) -> Option<u64> {
        let taken = self.0.places.taken();
        let state = taken.places.get(&self.0.number).filter(|state| state.stalled)?;
        // A connection that was told to go has no key left: it goes before all others.
        Some(state.since.unwrap_or(0))
    }
}

impl Turn {
    pub(super) fn progress(&self) {
        self.seat.update(|_| ());
    }

    /// The request has arrived completely, or is answered without the rest: the server works from
    /// here on.
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
        // A connection keeps its place while its request is worked on, until its answer is not
        // read.
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

//! Places for connections: so many at a time, and whose turn it is to go.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    /// Numbers the moments in which a place was taken, or came to be idle.
    next: u64,
    /// By the moment it was taken in: since when it is idle; `None`: it is not.
    places: BTreeMap<u64, Option<u64>>,
    /// The idle ones by the moment they came to be that: which they are, and whom to tell to go.
    idle: BTreeMap<u64, (u64, Arc<Notify>)>,
}

/// A connection's place, free again when this is dropped. It is idle to begin with.
pub(super) struct Place {
    seat: Arc<Seat>,
}

/// A request is under way: the place is not to be had.
pub(super) struct Held {
    seat: Arc<Seat>,
}

struct Seat {
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

    /// A place: a free one, else that of the connection which is idle for longest, as soon as there
    /// is one. One caller at a time.
    pub(super) async fn take(self: &Arc<Self>) -> Place {
        loop {
            let freed = self.freed.notified();
            {
                let mut taken = self.taken();
                if taken.places.len() < self.limit {
                    let number = taken.tick();
                    let seat = Seat { places: self.clone(), number, go: Arc::default() };
                    taken.rest(&seat);
                    return Place { seat: Arc::new(seat) };
                }
                if let Some((_, (number, go))) = taken.idle.pop_first() {
                    // Until it is gone it is neither idle nor busy: it is told to go once.
                    taken.places.insert(number, None);
                    go.notify_one();
                }
            }
            freed.await;
        }
    }

    /// Has every connection go that is idle.
    pub(super) fn clear_idle(&self) {
        let mut taken = self.taken();
        while let Some((_, (number, go))) = taken.idle.pop_first() {
            taken.places.insert(number, None);
            go.notify_one();
        }
    }
}

impl Taken {
    fn tick(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn rest(&mut self, seat: &Seat) {
        let since = self.tick();
        self.places.insert(seat.number, Some(since));
        self.idle.insert(since, (seat.number, seat.go.clone()));
    }
}

impl Place {
    /// Resolves when another is to have the place.
    pub(super) async fn evicted(&self) {
        self.seat.go.notified().await;
    }

    /// A request has come.
    pub(super) fn hold(&self) -> Held {
        let mut taken = self.seat.places.taken();
        if let Some(since) = taken.places.get_mut(&self.seat.number).and_then(Option::take) {
            taken.idle.remove(&since);
        }
        Held { seat: self.seat.clone() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut taken = self.seat.places.taken();
        // The connection may have ended before the last of its answer was dropped.
        if taken.places.contains_key(&self.seat.number) {
            taken.rest(&self.seat);
            drop(taken);
            self.seat.places.freed.notify_one();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.seat.places.taken();
        if let Some(since) = taken.places.remove(&self.seat.number).flatten() {
            taken.idle.remove(&since);
        }
        drop(taken);
        self.seat.places.freed.notify_one();
    }
}

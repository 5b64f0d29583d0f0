//! Instances loaded ahead.
//!
//! Loading takes most of a call, is the same for every call of a source, and has no effects. So
//! after each call of a source, one more instance is loaded in the background for the next call.
//! Each instance still serves one call only, and its fuel is charged as if it were loaded then.
//!
//! Nothing is loaded ahead while calls run: a block of 100 calls took a sixth longer with a second
//! thread that loads, because the cores share caches and memory.

use crate::instance::{Instances, Load, Loaded, spawn};
use cowboy_engine::primitives::Hash;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of linear memory of all instances that are kept. Each has some 16 MiB.
const MEMORY_OF_ALL: usize = 1 << 30;

/// Fuel of a load that is done ahead, at most a third of a second's work.
const MAX_FUEL: u64 = 1_000_000_000;

/// Time without a call before anything is loaded ahead: more than between two calls of a block.
const QUIET: Duration = Duration::from_millis(20);

/// Instances that are ready, by the hash of their source.
pub struct Pool {
    shared: Arc<Shared>,
    /// The thread that loads, while there is something to load. It ends with the last wish,
    /// because the pages of its stack stay in memory until then.
    loader: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    instances: Arc<Instances>,
    /// Maximum of `ready` and of `wishes`.
    size: usize,
    queues: Mutex<Queues>,
    /// Notified when the pool is closed.
    closing: Condvar,
}

#[derive(Default)]
struct Queues {
    /// The oldest first.
    ready: VecDeque<(Hash, Loaded)>,
    wishes: VecDeque<Wish>,
    loading: bool,
    closed: bool,
    /// Calls that run now.
    calls: usize,
    /// When the last call ended.
    ended: Option<Instant>,
}

impl Queues {
    /// How long the loader still has to wait.
    fn quiet_in(&self) -> Option<Duration> {
        match (self.calls, self.ended) {
            (1.., _) => Some(QUIET),
            (0, None) => None,
            (0, Some(ended)) => QUIET.checked_sub(ended.elapsed()).filter(|left| !left.is_zero()),
        }
    }
}

/// A call that runs.
pub struct Running<'a>(&'a Pool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut queues = self.0.shared.lock();
        queues.calls -= 1;
        queues.ended = Some(Instant::now());
    }
}

/// A source to be loaded, and the fuel that this takes.
struct Wish {
    hash: Hash,
    source: String,
    fuel: u64,
}

impl Pool {
    /// A pool of at most `size` instances; 0: none is ever loaded ahead.
    pub fn new(instances: Arc<Instances>, size: usize) -> Self {
        let (queues, closing) = Default::default();
        let shared = Shared { instances, size, queues, closing };
        Self { shared: Arc::new(shared), loader: Mutex::new(None) }
    }

    pub fn is_off(&self) -> bool {
        self.shared.size == 0
    }

    /// Number of instances that are ready.
    pub fn ready(&self) -> usize {
        self.shared.lock().ready.len()
    }

    /// Says that a call runs, until the result is dropped.
    pub fn running(&self) -> Running<'_> {
        self.shared.lock().calls += 1;
        Running(self)
    }

    /// Takes an instance of a source.
    pub fn take(&self, hash: Hash) -> Option<Loaded> {
        let mut queues = self.shared.lock();
        let at = queues.ready.iter().position(|(ready, _)| *ready == hash)?;
        queues.ready.remove(at).map(|(_, loaded)| loaded)
    }

    /// Wishes for one more instance of a source whose load took `fuel`.
    pub fn wish(&self, hash: Hash, source: &str, fuel: u64) {
        if self.is_off() || fuel > MAX_FUEL {
            return;
        }
        let mut queues = self.shared.lock();
        if queues.wishes.len() == self.shared.size {
            queues.wishes.pop_front();
        }
        queues.wishes.push_back(Wish { hash, source: source.to_owned(), fuel });
        if !queues.loading {
            queues.loading = true;
            drop(queues);
            let shared = self.shared.clone();
            // The one before has ended or is about to.
            *self.loader.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(spawn(move || shared.work()));
        }
    }

    /// Waits until nothing is left to load.
    pub fn settle(&self) {
        let loader = self.loader.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(loader) = loader {
            // A panic there says that this machine lacks memory; the next call will say so.
            let _ = loader.join();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.closing.notify_all();
        self.settle();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        // No code panics while it holds the lock.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let Some(wish) = self.next() else { return };
            // One more than it takes, so that it does not end as out of fuel.
            let loaded = self.instances.load(&wish.source, wish.fuel.saturating_add(1));
            if let Load::Ready(loaded) = loaded
                && loaded.fuel == wish.fuel
            {
                self.keep(wish.hash, loaded);
            }
        }
    }

    /// Waits until no call runs, and takes a wish.
    fn next(&self) -> Option<Wish> {
        let mut queues = self.lock();
        while let Some(wait) = queues.quiet_in().filter(|_| !queues.closed) {
            let waited = self.closing.wait_timeout(queues, wait);
            (queues, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let wish = if queues.closed { None } else { queues.wishes.pop_front() };
        queues.loading = wish.is_some();
        wish
    }

    fn keep(&self, hash: Hash, loaded: Loaded) {
        // Dropped without the lock, because that takes time.
        let mut dropped = Vec::new();
        let mut queues = self.lock();
        queues.ready.push_back((hash, loaded));
        let memory = |queues: &Queues| -> usize {
            queues.ready.iter().map(|(_, loaded)| loaded.memory()).sum()
        };
        while queues.ready.len() > self.size || memory(&queues) > MEMORY_OF_ALL {
            dropped.extend(queues.ready.pop_front());
        }
        drop(queues);
    }
}

#[cfg(test)]
mod tests {
    use super::{Instant, QUIET, Queues};

    #[test]
    fn the_loader_waits_while_calls_run_and_a_while_after() {
        let long_ago = Instant::now().checked_sub(2 * QUIET);
        assert!(long_ago.is_some(), "the clock began long ago");
        let waits = |calls, ended| Queues { calls, ended, ..Queues::default() }.quiet_in();
        assert_eq!(waits(0, None), None);
        assert_eq!(waits(0, long_ago), None);
        assert_eq!(waits(1, long_ago), Some(QUIET));
        let waits = waits(0, Some(Instant::now() + QUIET));
        assert_eq!(waits, Some(QUIET));
    }
}

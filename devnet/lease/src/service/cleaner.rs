//! Empties the write-ahead log soon after secret values were deleted, without blocking the owner.

use crate::{clock::Clock, store::empty_log};
use std::{
    path::PathBuf,
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::sync::oneshot;

/// How long deleted values may stay in the log, so that those deleted together are cleaned
/// together.
const DELAY: Duration = Duration::from_secs(1);
/// Pause after a reader kept the log from being emptied.
const PAUSE: Duration = Duration::from_secs(5);

pub(super) struct Cleaner {
    path: PathBuf,
    clock: Clock,
    due: Option<u64>,
    cleaning: Option<Cleaning>,
}

/// A running cleanup. Dropping it waits for its end.
struct Cleaning {
    done: oneshot::Receiver<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Cleaning {
    fn drop(&mut self) {
        // Fails if the thread panicked, which has been reported.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Cleaner {
    pub fn new(path: impl Into<PathBuf>, clock: Clock) -> Self {
        Self { path: path.into(), clock, due: None, cleaning: None }
    }

    pub fn soon(&mut self) {
        self.due.get_or_insert_with(|| self.clock.after(DELAY));
    }

    /// Proceeds to the next wait, at which it may be dropped.
    pub async fn work(&mut self) {
        if let Some(cleaning) = &mut self.cleaning {
            let empty = (&mut cleaning.done).await.unwrap_or(false);
            self.cleaning = None;
            if !empty {
                self.later();
            }
            return;
        }
        let Some(due) = self.due else { return std::future::pending().await };
        self.clock.reaches(due).await;
        self.due = None;
        let (path, (tell, done)) = (self.path.clone(), oneshot::channel());
        let thread = thread::Builder::new().name("lease-log".to_owned()).spawn(move || {
            let empty = empty_log(&path).unwrap_or_else(|error| {
                tracing::warn!(%error, "values of secrets that have gone may be in the log");
                false
            });
            // Fails if the owner has ended.
            let _ = tell.send(empty);
        });
        match thread {
            Ok(thread) => self.cleaning = Some(Cleaning { done, thread: Some(thread) }),
            Err(error) => {
                tracing::warn!(%error, "no thread to clean the log: it is tried again");
                self.later();
            }
        }
    }

    fn later(&mut self) {
        let again = self.clock.after(PAUSE);
        self.due = Some(self.due.map_or(again, |due| due.max(again)));
    }
}

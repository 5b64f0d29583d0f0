//! Empties the log of changes soon after values of secrets have gone, beside the owner.

use crate::lease::{clock::Clock, store::empty_log};
use std::{
    path::PathBuf,
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::sync::oneshot;

/// How long values that have gone may stay in the log: those that go together are cleaned together.
const DELAY: Duration = Duration::from_secs(1);
/// The pause after somebody was in the way.
const PAUSE: Duration = Duration::from_secs(5);

/// Empties the log when it has to.
pub(super) struct Cleaner {
    path: PathBuf,
    clock: Clock,
    /// When to begin.
    due: Option<u64>,
    cleaning: Option<Cleaning>,
}

/// A log that is being emptied. Dropping it waits for that.
struct Cleaning {
    /// Whether it is empty, once that is known.
    done: oneshot::Receiver<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Cleaning {
    fn drop(&mut self) {
        // An error: a panic, which has been told.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Cleaner {
    pub fn new(path: impl Into<PathBuf>, clock: Clock) -> Self {
        Self { path: path.into(), clock, due: None, cleaning: None }
    }

    /// Values have gone.
    pub fn soon(&mut self) {
        self.due.get_or_insert_with(|| self.clock.after(DELAY));
    }

    /// Goes on as far as the next wait, which may be given up at any time.
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
            // An error: the owner has ended.
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

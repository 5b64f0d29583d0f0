//! Empties the log of changes soon after values of secrets have gone, beside the owner.

use crate::lease::{clock::Clock, store::empty_log};
use std::{path::PathBuf, time::Duration};
use tokio::task::{JoinHandle, spawn_blocking};

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
    /// Whether it is empty, once that is known.
    cleaning: Option<JoinHandle<bool>>,
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
            let empty = cleaning.await.unwrap_or(false);
            self.cleaning = None;
            if !empty {
                let again = self.clock.after(PAUSE);
                self.due = Some(self.due.map_or(again, |due| due.max(again)));
            }
            return;
        }
        let Some(due) = self.due else { return std::future::pending().await };
        self.clock.reaches(due).await;
        self.due = None;
        let path = self.path.clone();
        self.cleaning = Some(spawn_blocking(move || {
            empty_log(&path).unwrap_or_else(|error| {
                tracing::warn!(%error, "values of secrets that have gone may be in the log");
                false
            })
        }));
    }
}

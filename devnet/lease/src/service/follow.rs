//! Waits for a job to enter another state.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

/// The waiting tasks, by job. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Followers(Arc<Mutex<BTreeMap<String, watch::Sender<()>>>>);

impl Followers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, watch::Sender<()>>> {
        // A panic while the lock was held leaves the map intact.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A receiver that is notified whenever the job enters a state.
    pub fn follow(&self, job: &str) -> watch::Receiver<()> {
        let mut followed = self.lock();
        followed.retain(|_, followers| followers.receiver_count() > 0);
        followed.entry(job.to_owned()).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    pub fn tell<'a>(&self, jobs: impl IntoIterator<Item = &'a str>) {
        let followed = self.lock();
        for job in jobs {
            if let Some(followers) = followed.get(job) {
                followers.send_replace(());
            }
        }
    }
}

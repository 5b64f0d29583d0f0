//! A job's directory, and the threads that are at work in it.
//!
//! Threads cannot be given up like futures: one that packs a cache goes on when nobody wants the
//! cache any more. So the directory belongs to all of them together: it is removed when the job
//! has [`close`](Workspace::close)d it and the last [`Hand`] is gone.

use crate::executor::command::Directory;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    task::{JoinError, JoinHandle, spawn_blocking},
    time::timeout,
};

/// How long threads may go on that were told to end: they look whenever they read or write.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// A job's directory, as the job has it.
pub(super) struct Workspace(Arc<Shared>);

struct Shared {
    directory: Directory,
    /// The job needs it no more.
    closed: AtomicBool,
    /// How many threads are at work.
    hands: watch::Sender<usize>,
}

/// A thread at work in the directory, which is there as long as this is.
pub(super) struct Hand {
    shared: Arc<Shared>,
    /// Nobody wants what it does any more.
    unwanted: Arc<AtomicBool>,
}

/// What a thread does, as who wants it has it. Dropped, it is not wanted any more.
pub(super) struct Work<T> {
    thread: JoinHandle<T>,
    unwanted: Arc<AtomicBool>,
}

impl Workspace {
    pub(super) fn new(directory: Directory) -> Self {
        let (closed, hands) = (AtomicBool::new(false), watch::Sender::new(0));
        Self(Arc::new(Shared { directory, closed, hands }))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.0.directory.path()
    }

    /// Has a thread do something in it, which ends soon after its [`Hand::is_over`].
    pub(super) fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Hand) -> T + Send + 'static,
    ) -> Work<T> {
        let unwanted = Arc::new(AtomicBool::new(false));
        self.0.hands.send_modify(|hands| *hands += 1);
        let hand = Hand { shared: Arc::clone(&self.0), unwanted: Arc::clone(&unwanted) };
        Work { thread: spawn_blocking(move || work(&hand)), unwanted }
    }

    /// Tells the threads to end, waits until they have, and removes the directory. If one does not
    /// end in time, it is the one that removes it.
    pub(super) async fn close(self) {
        self.0.closed.store(true, Ordering::Relaxed);
        let mut hands = self.0.hands.subscribe();
        if timeout(END_TIMEOUT, hands.wait_for(|hands| *hands == 0)).await.is_err() {
            tracing::warn!(path = %self.path().display(), "a job's directory is still in use");
        }
        // An error: the removal panicked, and the directory is left behind.
        let _ = spawn_blocking(move || drop(self)).await;
    }
}

impl Hand {
    /// The directory.
    pub(super) fn path(&self) -> &Path {
        self.shared.directory.path()
    }

    /// Whether the thread is to end, whatever it has done.
    pub(super) fn is_over(&self) -> bool {
        self.unwanted.load(Ordering::Relaxed) || self.shared.closed.load(Ordering::Relaxed)
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.shared.hands.send_modify(|hands| *hands -= 1);
    }
}

impl<T> Work<T> {
    /// Waits for what comes of it. Given up, it is still wanted.
    pub(super) async fn done(&mut self) -> Result<T, JoinError> {
        (&mut self.thread).await
    }
}

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        self.unwanted.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::command::Directories;
    use std::{fs, path::PathBuf, sync::mpsc};

    const LONG: Duration = Duration::from_secs(20);

    fn workspace() -> (Workspace, PathBuf) {
        let workspace = Workspace::new(Directory::new(&Directories::default()).unwrap());
        let path = workspace.path().to_owned();
        (workspace, path)
    }

    /// A thread that is at work until it is let go, and says when it is, and what it saw then.
    fn stubborn(workspace: &Workspace) -> (Work<(bool, bool)>, mpsc::Sender<()>) {
        let (go, gone) = mpsc::channel::<()>();
        let (begins, begun) = mpsc::channel();
        let work = workspace.work(move |hand| {
            begins.send(()).unwrap();
            let _ = gone.recv_timeout(LONG);
            (hand.is_over(), fs::write(hand.path().join("file"), "late").is_ok())
        });
        begun.recv_timeout(LONG).unwrap();
        (work, go)
    }

    #[tokio::test]
    async fn a_directory_is_there_as_long_as_a_thread_works_in_it() {
        let (workspace, path) = workspace();
        let (mut work, go) = stubborn(&workspace);
        let closing = tokio::spawn(workspace.close());
        // As far as it comes without the thread.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!closing.is_finished() && path.is_dir());
        go.send(()).unwrap();
        assert_eq!(work.done().await.unwrap(), (true, true));
        timeout(LONG, closing).await.expect("in time").unwrap();
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_nobody_wants_any_more_is_over() {
        let (workspace, path) = workspace();
        let (seen, sees) = mpsc::channel();
        let work = workspace.work(move |hand| {
            while !hand.is_over() {
                std::thread::yield_now();
            }
            seen.send(()).unwrap();
        });
        drop(work);
        spawn_blocking(move || sees.recv_timeout(LONG).unwrap()).await.unwrap();
        timeout(LONG, workspace.close()).await.expect("in time");
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn without_its_job_the_last_thread_removes_it() {
        let (workspace, path) = workspace();
        let (mut work, go) = stubborn(&workspace);
        drop(workspace);
        assert!(path.is_dir());
        go.send(()).unwrap();
        assert!(work.done().await.unwrap().1);
        let gone = async {
            while path.exists() {
                tokio::task::yield_now().await;
            }
        };
        timeout(LONG, gone).await.expect("it goes");
    }
}

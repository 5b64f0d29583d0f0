//! A job's directory and the threads that work in it.
//!
//! Threads cannot be dropped like futures: one that packs a cache goes on when the cache is no
//! longer wanted. So the job and the threads share the directory: it is removed when the job has
//! [`close`](Workspace::close)d it and the last [`Hand`] is dropped.

use cowboy_host::process::Directory;
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

/// How long threads may run after they were told to end; they check on each read and write.
const END_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Workspace(Arc<WorkspaceShared>);

struct WorkspaceShared {
    directory: Directory,
    closed: AtomicBool,
    hands: watch::Sender<usize>,
}

/// A thread's handle of the directory, which exists for as long as the handle.
pub(super) struct Hand {
    shared: Arc<WorkspaceShared>,
    unwanted: Arc<AtomicBool>,
}

/// The job's handle of a thread's work. Dropping it tells the thread to end.
pub(super) struct Work<T> {
    thread: JoinHandle<T>,
    unwanted: Arc<AtomicBool>,
}

impl Workspace {
    pub(super) fn new(directory: Directory) -> Self {
        let (closed, hands) = (AtomicBool::new(false), watch::Sender::new(0));
        Self(Arc::new(WorkspaceShared { directory, closed, hands }))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.directory.path()
    }

    /// Runs `work` on a thread, which must end soon after its [`Hand::is_over`].
    pub(super) fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Hand) -> T + Send + 'static,
    ) -> Work<T> {
        let unwanted = Arc::new(AtomicBool::new(false));
        self.0.hands.send_modify(|hands| *hands += 1);
        let hand = Hand { shared: Arc::clone(&self.0), unwanted: Arc::clone(&unwanted) };
        Work { thread: spawn_blocking(move || work(&hand)), unwanted }
    }

    /// Tells the threads to end, waits until they have, and removes the directory. A thread that
    /// does not end in time removes it itself.
    pub(super) async fn close(self) {
        self.0.closed.store(true, Ordering::Relaxed);
        let mut hands = self.0.hands.subscribe();
        if timeout(END_TIMEOUT, hands.wait_for(|hands| *hands == 0)).await.is_err() {
            tracing::warn!(path = %self.path().display(), "a job's directory is still in use");
        }
        // Fails if the removal panicked: the directory is left behind.
        let _ = spawn_blocking(move || drop(self)).await;
    }
}

impl Hand {
    pub(super) fn path(&self) -> &Path {
        self.shared.directory.path()
    }

    /// Whether the thread should end, even if its work is incomplete.
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
    /// Waits for the result. Dropping this future does not end the work.
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
    use cowboy_host::process::Directories;
    use std::{fs, path::PathBuf, sync::mpsc};

    const LONG: Duration = Duration::from_secs(20);

    fn workspace() -> (Workspace, PathBuf) {
        let workspace = Workspace::new(Directory::new(&Directories::default()).unwrap());
        let path = workspace.path().to_owned();
        (workspace, path)
    }

    /// A thread that works until it is released. Returns whether it was told to end by then, and
    /// whether it could still write to the directory.
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
        // Runs the close as far as it gets without the thread.
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

//! Progress of a wait: a changing line on a terminal, and occasional lines elsewhere, so that a CI
//! log shows how far a wait is.

use cowboy_host::duration::Plain;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    runtime::Handle,
    task::AbortHandle,
    time::{Instant, sleep_until},
};

/// The times at which a wait prints lines without a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// The time from the beginning of the wait to the first line.
    pub first: Duration,
    pub every: Duration,
}

impl Pace {
    /// Rare enough for a log, but before a CI job looks stuck.
    pub const LOG: Self = Self { first: Duration::from_secs(10), every: Duration::from_secs(30) };

    /// The time of line `number` from the beginning of the wait; the first is 0.
    fn due(self, number: u32) -> Duration {
        self.first.saturating_add(self.every.saturating_mul(number))
    }
}

/// A running wait, whose display ends when this is dropped.
#[derive(Debug)]
pub enum Progress {
    Shown(ProgressBar),
    Told {
        /// The text of the next line.
        text: Arc<Mutex<String>>,
        task: AbortHandle,
    },
    Silent,
}

impl Progress {
    /// Shows a line on the terminal of stderr.
    pub fn shown(text: String) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})")
            .expect("the template is well formed");
        bar.set_style(style);
        bar.set_message(text);
        bar.enable_steady_tick(Duration::from_millis(100));
        Self::Shown(bar)
    }

    /// Calls `say` with lines at this pace. Does nothing without a runtime.
    pub fn told(text: String, pace: Pace, say: impl Fn(&str) + Send + 'static) -> Self {
        let Ok(runtime) = Handle::try_current() else { return Self::Silent };
        let text = Arc::new(Mutex::new(text));
        let (now, began) = (text.clone(), Instant::now());
        let task = runtime.spawn(async move {
            for number in 0.. {
                sleep_until(began + pace.due(number)).await;
                let text = now.lock().unwrap_or_else(PoisonError::into_inner).clone();
                say(&line(&text, began.elapsed()));
            }
        });
        Self::Told { text, task: task.abort_handle() }
    }

    pub fn show(&self, now: String) {
        match self {
            Self::Shown(bar) => bar.set_message(now),
            Self::Told { text, .. } => *text.lock().unwrap_or_else(PoisonError::into_inner) = now,
            Self::Silent => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        match self {
            Self::Shown(bar) => bar.finish_and_clear(),
            Self::Told { task, .. } => task.abort(),
            Self::Silent => {}
        }
    }
}

/// The text, with the time waited so far in whole seconds.
fn line(text: &str, waited: Duration) -> String {
    format!("{text} ({})", Plain(Duration::from_secs(waited.as_secs())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[test]
    fn lines_come_after_ten_seconds_and_then_every_thirty() {
        let due: Vec<_> = (0..4).map(|number| Pace::LOG.due(number).as_secs()).collect();
        assert_eq!(due, [10, 40, 70, 100]);
        let waiting = "waiting for block 70: block 42";
        let check = |ms, expected: &str| {
            assert_eq!(line(waiting, Duration::from_millis(ms)), format!("{waiting} ({expected})"));
        };
        check(10_001, "10 s");
        check(100_999, "1 m 40 s");
    }

    #[test]
    fn each_line_says_what_was_seen_last_and_none_comes_after_the_wait() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (said, mut lines) = mpsc::unbounded_channel();
            let pace = Pace { first: Duration::from_millis(1), every: Duration::from_millis(1) };
            let say = move |line: &str| {
                let (text, _waited) = line.rsplit_once(" (").unwrap();
                drop(said.send(text.to_owned()));
            };
            let progress = Progress::told("waiting for block 70".to_owned(), pace, say);
            assert_eq!(lines.recv().await.unwrap(), "waiting for block 70");
            progress.show("waiting for block 70: block 42".to_owned());
            // An earlier text may have been printed first.
            while lines.recv().await.unwrap() != "waiting for block 70: block 42" {}
            drop(progress);
            while lines.recv().await.is_some() {}
        });
    }

    #[test]
    fn without_a_runtime_nothing_is_said() {
        let told = Progress::told("playing".to_owned(), Pace::LOG, |_| {});
        assert!(matches!(told, Progress::Silent));
        told.show("still playing".to_owned());
    }
}

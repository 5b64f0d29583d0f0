//! The time that leases are measured by: the system's, or one that tests move.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::{sync::watch, time::sleep};

/// The longest that the system's time is not looked at: somebody may set it.
const LOOK: Duration = Duration::from_secs(60);

/// A clock, in milliseconds since the Unix epoch. Clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Manual(watch::Receiver<u64>),
}

/// Moves a clock.
#[derive(Debug)]
pub struct Hands(watch::Sender<u64>);

impl Clock {
    /// The system's clock.
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that shows `start` until it is moved.
    pub fn manual(start: u64) -> (Self, Hands) {
        let (hands, shown) = watch::channel(start);
        (Self(Source::Manual(shown)), Hands(hands))
    }

    /// The time.
    pub fn now(&self) -> u64 {
        match &self.0 {
            Source::System => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, ms),
            Source::Manual(shown) => *shown.borrow(),
        }
    }

    /// The time so much later.
    pub fn after(&self, wait: Duration) -> u64 {
        self.now().saturating_add(ms(wait))
    }

    /// Resolves once it shows `at`, or later.
    pub async fn reaches(&self, at: u64) {
        match &self.0 {
            Source::System => loop {
                let left = at.saturating_sub(self.now());
                if left == 0 {
                    return;
                }
                sleep(Duration::from_millis(left).min(LOOK)).await;
            },
            Source::Manual(shown) => {
                if shown.clone().wait_for(|now| *now >= at).await.is_err() {
                    // Nobody moves it any more.
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}

impl Hands {
    /// Moves the clock on, which wakes whoever waits for a time until then.
    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|now| *now = now.saturating_add(ms(by)));
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn whoever_waits_for_a_time_is_woken_by_hand() {
        let (clock, hands) = Clock::manual(1_000);
        assert_eq!((clock.now(), clock.after(Duration::from_secs(1))), (1_000, 2_000));
        clock.reaches(1_000).await;
        let other = clock.clone();
        let mut waiting = Box::pin(other.reaches(2_000));
        hands.advance(Duration::from_millis(999));
        assert!(waiting.as_mut().now_or_never().is_none());
        hands.advance(Duration::from_millis(1));
        waiting.await;
        drop(hands);
        assert!(clock.reaches(3_000).now_or_never().is_none());
        assert_eq!(clock.now(), 2_000);
    }

    #[tokio::test]
    async fn the_systems_time_comes_by_itself() {
        let clock = Clock::system();
        let soon = clock.after(Duration::from_millis(2));
        clock.reaches(soon).await;
        assert!(clock.now() >= soon);
    }
}

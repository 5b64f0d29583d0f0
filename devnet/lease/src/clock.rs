//! The clock that leases use: the system's, or one that tests move by hand.
//!
//! The system's time is read once. From then on the clock counts monotonically, so that setting the
//! system's time changes no lease.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::{sync::watch, time::sleep};

/// A clock, in milliseconds since the Unix epoch. Clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    /// The system's time in milliseconds at the given instant.
    System(u64, Instant),
    Manual(watch::Receiver<u64>),
}

/// Moves a clock.
#[derive(Debug)]
pub struct Hands(watch::Sender<u64>);

impl Clock {
    /// A clock that starts at the system's time and is independent of later changes to it.
    pub fn system() -> Self {
        Self::since(SystemTime::now())
    }

    fn since(now: SystemTime) -> Self {
        let now = now.duration_since(UNIX_EPOCH).map_or(0, ms);
        Self(Source::System(now, Instant::now()))
    }

    /// A clock that shows `start` until it is moved.
    pub fn manual(start: u64) -> (Self, Hands) {
        let (hands, shown) = watch::channel(start);
        (Self(Source::Manual(shown)), Hands(hands))
    }

    pub fn now(&self) -> u64 {
        match &self.0 {
            Source::System(start, since) => start.saturating_add(ms(since.elapsed())),
            Source::Manual(shown) => *shown.borrow(),
        }
    }

    pub fn after(&self, wait: Duration) -> u64 {
        self.now().saturating_add(ms(wait))
    }

    pub async fn reaches(&self, at: u64) {
        match &self.0 {
            Source::System(..) => loop {
                let left = at.saturating_sub(self.now());
                if left == 0 {
                    return;
                }
                sleep(Duration::from_millis(left)).await;
            },
            Source::Manual(shown) => {
                if shown.clone().wait_for(|now| *now >= at).await.is_err() {
                    // The clock's hands are gone: it never moves again.
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}

impl Hands {
    /// Moves the clock on and wakes the tasks that wait for a time up to then.
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
    async fn a_clock_goes_on_from_when_it_began_whatever_the_system_shows() {
        let begun = UNIX_EPOCH + Duration::from_secs(7);
        let clock = Clock::since(begun);
        let first = clock.now();
        // The system's time is in another century.
        assert!((7_000..60_000).contains(&first), "{first}");
        clock.reaches(first + 2).await;
        assert!((first + 2..60_000).contains(&clock.clone().now()));
        assert_eq!(Clock::since(UNIX_EPOCH - Duration::from_secs(1)).now(), 0);
    }

    #[tokio::test]
    async fn the_systems_time_comes_by_itself() {
        let clock = Clock::system();
        let soon = clock.after(Duration::from_millis(2));
        clock.reaches(soon).await;
        assert!(clock.now() >= soon);
    }
}

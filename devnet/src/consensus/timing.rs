//! The times and timeouts of consensus.

use cowboy_engine::primitives::Height;
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::sync::watch;

/// When to propose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time between a parent's timestamp and its child's; zero: as fast as possible.
    pub block_time: Duration,
    /// How long a proposer waits for its parent's certificate. Well below the leader timeout.
    pub cert_wait: Duration,
}

/// Lifts the pace of a devnet's proposers, for a while or for transactions. Clones share it.
///
/// It changes only when a proposer proposes. No block's validity depends on it, and no validator
/// needs to know another's.
#[derive(Clone, Debug)]
pub struct FastForward(Arc<watch::Sender<Lift>>);

/// Blocks up to `to` that are proposed before `until` are not paced.
#[derive(Clone, Copy, Debug)]
struct Lift {
    to: Height,
    until: SystemTime,
    /// Whether a transaction that waits lifts the pace.
    by_transactions: bool,
}

impl Default for FastForward {
    /// Everything is paced.
    fn default() -> Self {
        let (to, until) = (Height::GENESIS, SystemTime::UNIX_EPOCH);
        let none = Lift { to, until, by_transactions: false };
        Self(Arc::new(watch::Sender::new(none)))
    }
}

impl FastForward {
    /// From `now` to `until`, blocks up to `to` are proposed as soon as their parents allow. When
    /// two lifts overlap, the higher `to` and the later `until` apply.
    pub fn lift(&self, now: SystemTime, to: Height, until: SystemTime) {
        self.0.send_modify(|lift| {
            let in_force = lift.until > now;
            lift.to = if in_force { lift.to.max(to) } else { to };
            lift.until = lift.until.max(until);
        });
    }

    /// Whether a transaction gets a block at once from now on.
    pub fn automine(&self, on: bool) {
        self.0.send_modify(|lift| lift.by_transactions = on);
    }

    /// Resolves once transactions get blocks at once.
    pub async fn automines(&self) {
        let mut lifts = self.0.subscribe();
        let on = lifts.wait_for(|lift| lift.by_transactions).await.is_ok();
        debug_assert!(on, "the sender lives as long as this future borrows it");
    }

    /// Resolves once a block of this height need not wait for its block time, as of `now`.
    pub async fn spares(&self, height: Height, now: SystemTime) {
        let mut lifts = self.0.subscribe();
        let spared = lifts.wait_for(|lift| lift.to >= height && lift.until > now).await.is_ok();
        debug_assert!(spared, "the sender lives as long as this future borrows it");
    }
}

/// The timeouts of a view, and its pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub pace: Pace,
    /// How long a view waits for its proposal.
    pub leader_timeout: Duration,
    /// How long a view waits for its certificate.
    pub certification_timeout: Duration,
    /// Pause between votes to give a view up.
    pub timeout_retry: Duration,
    /// How long a leader may be silent before its views are skipped.
    pub skip_timeout: Duration,
    /// Time limit of a peer for answering a request.
    pub fetch_timeout: Duration,
}

impl Timing {
    /// The times for a chain of this block time. They grow with it, so that a view waits for a
    /// proposal half a second longer than the block time.
    pub fn new(block_time: Duration) -> Self {
        let leader_timeout = block_time + Duration::from_millis(500);
        let certification_timeout = leader_timeout + Duration::from_secs(1);
        Self {
            pace: Pace { block_time, cert_wait: Duration::from_millis(200) },
            leader_timeout,
            certification_timeout,
            timeout_retry: Duration::from_secs(1),
            // Simplex requires it to be longer than the two before.
            skip_timeout: Duration::from_secs(5).max(certification_timeout * 2),
            fetch_timeout: Duration::from_millis(500),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[test]
    fn the_higher_of_two_lifts_counts_while_both_are_in_force() {
        let fast_forward = FastForward::default();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let spared = |height, now| {
            fast_forward.spares(Height::new(height), at(now)).now_or_never().is_some()
        };
        assert!(!spared(1, 1));
        fast_forward.lift(at(10), Height::new(50), at(20));
        fast_forward.lift(at(11), Height::new(40), at(30));
        for (height, now, expected) in [(40, 12, true), (50, 12, true), (51, 12, false)] {
            assert_eq!(spared(height, now), expected, "block {height} at {now}");
        }
        assert!(spared(50, 29));
        assert!(!spared(50, 30));
        fast_forward.lift(at(31), Height::new(45), at(40));
        assert!(spared(45, 32));
        assert!(!spared(46, 32), "a lift that is over counts no more");
    }

    #[tokio::test]
    async fn transactions_lift_the_pace_while_that_is_on() {
        let fast_forward = FastForward::default();
        assert!(fast_forward.automines().now_or_never().is_none());
        fast_forward.automine(true);
        fast_forward.automines().await;
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        fast_forward.lift(at(10), Height::new(50), at(20));
        fast_forward.automines().await;
        fast_forward.automine(false);
        assert!(fast_forward.automines().now_or_never().is_none());
        assert!(fast_forward.spares(Height::new(50), at(12)).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_proposer_that_waits_is_woken() {
        let fast_forward = FastForward::default();
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let waiting = tokio::spawn({
            let fast_forward = fast_forward.clone();
            async move { fast_forward.spares(Height::new(7), at(10)).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        fast_forward.lift(at(11), Height::new(7), at(12));
        waiting.await.unwrap();
    }
}

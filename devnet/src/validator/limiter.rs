//! The rate limit on handshakes per address (spec connectivity.md §2).

use crate::transport::half_open::source;
use std::{collections::BTreeMap, net::IpAddr};

/// The maximum number of remembered addresses. Beyond it, addresses with a full bucket are
/// forgotten; if no address has one, new addresses are refused.
const MAX_ADDRESSES: usize = 4_096;

/// The cost of an attempt in bucket units: attempts per second equal thousandths per millisecond.
const ATTEMPT: u64 = 1_000;

/// The size of a token bucket per address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketLimits {
    /// Attempts at once.
    pub burst: u32,
    /// Attempts per second on average.
    pub per_second: u32,
}

impl Default for BucketLimits {
    /// 64 at once, 16 per second (spec connectivity.md §2).
    fn default() -> Self {
        Self { burst: 64, per_second: 16 }
    }
}

impl BucketLimits {
    /// Limits for `runners` runners that all come from one address, as on one machine: all of them
    /// at once, and never less than the default.
    pub fn sharing_an_address(runners: usize) -> Self {
        let usual = Self::default();
        let runners = u32::try_from(runners).unwrap_or(u32::MAX);
        Self { burst: usual.burst.max(runners), per_second: usual.per_second.max(runners / 4) }
    }
}

/// Counts attempts by address.
#[derive(Debug, Default)]
pub struct HelloLimiter {
    limits: BucketLimits,
    buckets: BTreeMap<IpAddr, Bucket>,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Thousandths of attempts left at `at`.
    left: u64,
    /// In ms.
    at: u64,
}

impl HelloLimiter {
    pub const fn new(limits: BucketLimits) -> Self {
        Self { limits, buckets: BTreeMap::new() }
    }

    /// Counts an attempt from `address` at `now` in ms; false when it exceeds the limit. An IPv6
    /// /64 network counts as one address.
    pub fn admit(&mut self, address: IpAddr, now: u64) -> bool {
        let address = source(address);
        let full = u64::from(self.limits.burst) * ATTEMPT;
        let refilled = |bucket: Bucket| {
            let gained =
                now.saturating_sub(bucket.at).saturating_mul(self.limits.per_second.into());
            bucket.left.saturating_add(gained).min(full)
        };
        let left = match self.buckets.get(&address) {
            Some(bucket) => refilled(*bucket),
            None => {
                if self.buckets.len() >= MAX_ADDRESSES {
                    self.buckets.retain(|_, bucket| refilled(*bucket) < full);
                }
                if self.buckets.len() >= MAX_ADDRESSES {
                    return false;
                }
                full
            }
        };
        let admitted = left >= ATTEMPT;
        let left = if admitted { left - ATTEMPT } else { left };
        self.buckets.insert(address, Bucket { left, at: now });
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn address(i: u32) -> IpAddr {
        Ipv4Addr::from(i).into()
    }

    #[test]
    fn a_burst_then_a_steady_rate_per_address() {
        let mut limiter = HelloLimiter::new(BucketLimits::default());
        let mut admitted = |from, now, attempts: u32| {
            (0..attempts).filter(|_| limiter.admit(address(from), now)).count()
        };
        assert_eq!(admitted(1, 0, 100), 64);
        assert_eq!(admitted(2, 0, 100), 64);
        assert_eq!(admitted(1, 62, 1), 0);
        assert_eq!(admitted(1, 63, 2), 1);
        assert_eq!(admitted(1, 1_063, 100), 16);
        assert_eq!(admitted(1, 10_000_000, 100), 64);
        // A clock that steps back neither takes nor gives attempts.
        assert_eq!(admitted(1, 0, 1), 0);
    }

    #[test]
    fn addresses_are_bounded() {
        let mut limiter = HelloLimiter::new(BucketLimits::default());
        for i in 0..MAX_ADDRESSES as u32 {
            assert!(limiter.admit(address(i), 0));
        }
        assert!(!limiter.admit(address(u32::MAX), 0));
        assert!(limiter.admit(address(0), 0));
        assert!(limiter.admit(address(u32::MAX), 1_000));
        assert_eq!(limiter.buckets.len(), 1, "all others had their attempts again");
    }
}

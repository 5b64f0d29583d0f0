//! Limits on connections whose peer has not proved its identity yet (spec connectivity.md §2), in
//! total and per address.
//!
//! A flood must not keep other peers out, and many honest peers at once must get through. When an
//! attempt from address A arrives:
//!
//! * If A already has [`HalfOpenLimits::per_address`] connections, A's oldest loses its place,
//!   provided that it has had the place for [`HalfOpenLimits::grace`]; otherwise the attempt is
//!   refused.
//! * If there are [`HalfOpenLimits::whole`] connections in total, the address with the most loses
//!   its oldest, provided that it has at least two more than A. Otherwise no address is to blame,
//!   and the oldest of all loses its place if it has had it for [`HalfOpenLimits::grace`]; if not,
//!   the attempt is refused.
//!
//! A peer that knows the protocol finishes within `grace`. So a flood from one address takes places
//! only from itself, and a crowd of honest peers at one address does not undo its own handshakes.
//! IPv6 addresses of one /64 network count as one, because a host can have any number of them.

use commonware_utils::sync::Mutex;
use std::{
    cmp::Reverse,
    collections::BTreeMap,
    future::{Future, pending},
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};
use tokio::sync::oneshot;

/// Limits of connections that have not proved their identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HalfOpenLimits {
    pub whole: usize,
    pub per_address: usize,
    /// The minimum time that a connection keeps its place.
    pub grace: Duration,
}

impl Default for HalfOpenLimits {
    /// 256, half of them for one address, for a second. An honest handshake takes three round
    /// trips. A TLS handshake costs some 20 KiB while it lasts; a silent connection costs a task
    /// and at most one control frame.
    fn default() -> Self {
        Self { whole: 256, per_address: 128, grace: Duration::from_secs(1) }
    }
}

/// The first of the addresses that count as one together with `address`.
pub fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & (u128::MAX << 64);
            Ipv6Addr::from_bits(network).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// The half-open connections. Clones share them.
#[derive(Clone)]
pub struct HalfOpen(Arc<Mutex<HalfOpenPlaces>>);

struct HalfOpenPlaces {
    limits: HalfOpenLimits,
    /// By address, then by number in the order of arrival. No inner map is empty.
    taken: BTreeMap<IpAddr, BTreeMap<u64, HalfOpenPlace>>,
    count: usize,
    next: u64,
}

struct HalfOpenPlace {
    /// In Unix ms.
    since: u64,
    lose: oneshot::Sender<()>,
}

/// A place for a half-open connection. Dropping it frees the place.
pub struct Slot {
    places: HalfOpen,
    address: IpAddr,
    number: u64,
    lost: Option<oneshot::Receiver<()>>,
}

impl HalfOpen {
    pub fn new(limits: HalfOpenLimits) -> Self {
        let places = HalfOpenPlaces { limits, taken: BTreeMap::new(), count: 0, next: 0 };
        Self(Arc::new(Mutex::new(places)))
    }

    /// Takes a place for an attempt from `address` at `now` in ms; `None` means that it must be
    /// refused.
    pub fn admit(&self, address: IpAddr, now: u64) -> Option<Slot> {
        let address = source(address);
        let (number, lost) = self.0.lock().admit(address, now)?;
        Some(Slot { places: self.clone(), address, number, lost: Some(lost) })
    }

    pub fn count(&self) -> usize {
        self.0.lock().count
    }
}

impl HalfOpenPlaces {
    fn admit(&mut self, address: IpAddr, now: u64) -> Option<(u64, oneshot::Receiver<()>)> {
        let own = self.taken.get(&address).map_or(0, BTreeMap::len);
        if own >= self.limits.per_address {
            self.evict(address, Some(now))?;
        } else if self.count >= self.limits.whole {
            let heaviest = self
                .taken
                .iter()
                .max_by_key(|(_, places)| (places.len(), Reverse(places.keys().next())))
                .map(|(address, places)| (*address, places.len()));
            match heaviest {
                Some((heaviest, most)) if most > own + 1 => self.evict(heaviest, None)?,
                _ => {
                    let oldest = self.taken.iter().min_by_key(|(_, places)| places.keys().next());
                    let oldest = oldest.map(|(address, _)| *address)?;
                    self.evict(oldest, Some(now))?;
                }
            }
        }
        let (lose, lost) = oneshot::channel();
        let number = self.next;
        self.next += 1;
        self.taken.entry(address).or_default().insert(number, HalfOpenPlace { since: now, lose });
        self.count += 1;
        Some((number, lost))
    }

    /// Evicts the oldest connection of `address`; `None` if it is still within its grace at
    /// `unless_young`.
    fn evict(&mut self, address: IpAddr, unless_young: Option<u64>) -> Option<()> {
        let (&number, place) = self.taken.get(&address)?.first_key_value()?;
        let grace = self.limits.grace.as_millis();
        if unless_young.is_some_and(|now| u128::from(now.saturating_sub(place.since)) < grace) {
            return None;
        }
        let place = self.free(address, number)?;
        // An error means that its connection has just ended.
        let _ = place.lose.send(());
        Some(())
    }

    fn free(&mut self, address: IpAddr, number: u64) -> Option<HalfOpenPlace> {
        let places = self.taken.get_mut(&address)?;
        let place = places.remove(&number)?;
        if places.is_empty() {
            self.taken.remove(&address);
        }
        self.count -= 1;
        Some(place)
    }
}

impl Slot {
    /// Waits until the place is taken away; pends forever once it has been freed.
    pub fn lost(&mut self) -> impl Future<Output = ()> + Send + use<> {
        let lost = self.lost.take();
        async move {
            let taken = match lost {
                Some(lost) => lost.await.is_ok(),
                None => false,
            };
            if !taken {
                pending::<()>().await;
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.places.0.lock().free(self.address, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use std::net::Ipv4Addr;

    const LIMITS: HalfOpenLimits =
        HalfOpenLimits { whole: 6, per_address: 3, grace: Duration::from_millis(10) };

    fn address(i: u32) -> IpAddr {
        Ipv4Addr::from(i).into()
    }

    /// Makes attempts of (address, time) one after the other, and compares the refused ones and
    /// those that lose their places.
    fn check(attempts: &[(u32, u64)], refused: &[usize], lost: &[usize]) {
        let places = HalfOpen::new(LIMITS);
        let mut slots: Vec<_> =
            attempts.iter().map(|(from, now)| places.admit(address(*from), *now)).collect();
        let mut which = |is: fn(&mut Option<Slot>) -> bool| -> Vec<usize> {
            slots.iter_mut().enumerate().filter_map(|(i, slot)| is(slot).then_some(i)).collect()
        };
        assert_eq!(which(|slot| slot.is_none()), refused, "refused of {attempts:?}");
        let gone =
            which(|slot| slot.as_mut().is_some_and(|slot| slot.lost().now_or_never().is_some()));
        assert_eq!(gone, lost, "lost of {attempts:?}");
        assert_eq!(places.count(), attempts.len() - refused.len() - lost.len());
        drop(slots);
        assert_eq!(places.count(), 0);
        assert!(places.0.lock().taken.is_empty());
    }

    #[test]
    fn one_address_takes_places_from_itself_alone() {
        check(&[(1, 0), (1, 0), (1, 0)], &[], &[]);
        check(&[(1, 0), (1, 0), (1, 0), (1, 9)], &[3], &[]);
        check(&[(1, 0), (1, 1), (1, 2), (1, 10), (1, 10), (1, 11)], &[4], &[0, 1]);
        check(&[(2, 0), (1, 0), (1, 0), (1, 0), (1, 50), (1, 50)], &[], &[1, 2]);
        // A clock that steps back costs no connection its place.
        check(&[(1, 90), (1, 90), (1, 90), (1, 9)], &[3], &[]);
    }

    #[test]
    fn where_all_places_are_taken_the_address_with_most_gives_way() {
        let full = [(1, 0), (1, 0), (2, 0), (2, 0), (2, 0), (3, 0)];
        let and = |attempts: &[(u32, u64)]| [&full[..], attempts].concat();
        check(&and(&[(4, 0)]), &[], &[2]);
        // When two addresses have equally many, the one with the oldest connection loses.
        check(&and(&[(4, 0), (5, 0)]), &[], &[0, 2]);
        // No address has two more than the new one, so none loses a place at once.
        check(&and(&[(4, 0), (5, 0), (4, 0)]), &[8], &[0, 2]);
        check(&and(&[(4, 0), (5, 0), (4, 10)]), &[], &[0, 1, 2]);
    }

    #[test]
    fn many_addresses_get_the_places_of_the_oldest() {
        let full: Vec<_> = (0..6).map(|i| (i, u64::from(i))).collect();
        let and = |attempts: &[(u32, u64)]| [&full[..], attempts].concat();
        check(&and(&[(6, 9)]), &[6], &[]);
        check(&and(&[(6, 10), (7, 10), (8, 11)]), &[7], &[0, 1]);
    }

    #[test]
    fn whoever_is_through_loses_nothing() {
        let places = HalfOpen::new(LIMITS);
        let mut through = places.admit(address(1), 0).unwrap();
        let lost = through.lost();
        drop(through);
        let more: Vec<_> = (0..5).map(|_| places.admit(address(1), 100)).collect();
        assert_eq!(more.iter().filter(|slot| slot.is_some()).count(), 3);
        assert!(lost.now_or_never().is_none());
    }

    #[test]
    fn one_network_is_one_source() {
        let of = |text: &str| source(text.parse().unwrap()).to_string();
        assert_eq!(of("127.0.0.2"), "127.0.0.2");
        assert_eq!(of("::ffff:127.0.0.2"), "127.0.0.2");
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("2001:db8:1:3::1"), "2001:db8:1:3::");
        assert_eq!(of("::1"), "::");
    }
}

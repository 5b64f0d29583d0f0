//! Faults laid on purpose on a devnet: on the links between its nodes and on validators' votes.
//!
//! [`Faults`] is the table of all active faults, one per devnet. A [`Tap`] is one node's access to
//! it. Code that carries messages asks its node's tap about each message and gets a [`Decision`].
//! This happens in two places, each for all links of its kind and in both directions:
//!
//! * messages that a validator receives from another ([`crate::consensus::faulty`]);
//! * UDP datagrams that a node sends over QUIC ([`crate::transport::quic`]).
//!
//! A validator's votes about runners pass through its tap too ([`Tap::vote`]).
//!
//! Where all nodes of a devnet live in one process, asking at one end of a link is enough.
//! Validators in processes of their own have a table each, with the same rules, and know a runner
//! of another process by the address of its connection ([`Faults::met`]). A node that is unknown to
//! the table matches no rule by name.
//!
//! Several rules may match one message. A rule that cuts the link decides. Otherwise losses are
//! drawn in the order in which the rules were laid, and otherwise delays add up. Without rules,
//! asking costs one atomic load.
//!
//! # Draws
//!
//! Loss and jitter are drawn from keccak256 over the rule's seed, kind and place, the link and its
//! direction, and the rule's number of earlier draws for that direction. So the n-th message of a
//! link has the same fate in every run with the same seed. Which message is the n-th depends on the
//! timing of a real devnet.

mod delayed;
mod lie;
mod rule;
mod tap;

#[cfg(test)]
mod tests;

pub use delayed::Delayed;
pub use lie::Lie;
pub use rule::{At, Fault, MAX_DELAY, Rule, Tally, Until};
pub use tap::Tap;

use commonware_utils::sync::Mutex;
use cowboy_engine::{presence::Bitmap, registry::Order};
use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};
use tokio::sync::watch;

/// The fate of a message.
#[derive(Debug, Clone)]
pub enum Decision {
    Pass,
    Drop,
    Delay {
        by: Duration,
        /// Whether it has to stay behind earlier messages of its link.
        ordered: bool,
        /// The tally of the delaying rule, which counts the message if too many wait and it is
        /// lost.
        tally: Arc<Tally>,
    },
}

/// The identity by which a carrier knows the node at the other end of a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerSeat {
    /// The UDP address that its QUIC endpoint is bound to.
    Udp(SocketAddr),
    /// Its consensus key, encoded.
    Key(Vec<u8>),
}

/// All active faults. Clones share the table.
#[derive(Clone)]
pub struct Faults(Arc<FaultsInner>);

struct FaultsInner {
    /// The seed of rules without their own.
    seed: u64,
    /// Number of rules that concern links.
    links: AtomicUsize,
    table: Mutex<FaultTable>,
    /// Notifies the task that ends rules of changes in the table.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct FaultTable {
    rules: Vec<Rule>,
    laid: u64,
    head: u64,
    seats: BTreeMap<PeerSeat, Arc<str>>,
    /// The seats of nodes that other processes run, by name.
    met: BTreeMap<Arc<str>, PeerSeat>,
}

impl Faults {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(FaultsInner {
            seed,
            links: AtomicUsize::new(0),
            table: Mutex::default(),
            changed: watch::Sender::new(()),
        }))
    }

    /// Lays a fault, with its own seed if one is given, and returns the rule. It replaces an older
    /// rule of the same kind at the same place; there is at most one partition. It ends at `until`,
    /// see [`Self::due`].
    pub fn lay(&self, fault: Fault, seed: Option<u64>, until: Option<Until>) -> Rule {
        let mut table = self.0.table.lock();
        table.rules.retain(|rule| !rule.fault.is_replaced_by(&fault));
        table.laid += 1;
        let seed = seed.unwrap_or(self.0.seed);
        let rule = Rule::new(table.laid, fault, seed, table.head, until);
        table.rules.push(rule.clone());
        self.count(&table);
        rule
    }

    /// Replaces all rules by those with these numbers, faults and seeds. A rule that is there
    /// already goes on.
    pub fn replace(&self, rules: Vec<(u64, Fault, u64)>) {
        let mut table = self.0.table.lock();
        let (mut before, head) = (std::mem::take(&mut table.rules), table.head);
        for (id, fault, seed) in rules {
            let known = before.iter().position(|rule| rule.id == id && rule.fault == fault);
            let rule = match known {
                Some(place) => before.swap_remove(place),
                None => Rule::new(id, fault, seed, head, None),
            };
            table.laid = table.laid.max(id);
            table.rules.push(rule);
        }
        self.count(&table);
    }

    pub fn lift(&self, id: u64) -> Option<Rule> {
        let mut table = self.0.table.lock();
        let place = table.rules.iter().position(|rule| rule.id == id)?;
        let rule = table.rules.remove(place);
        self.count(&table);
        Some(rule)
    }

    /// Removes the kill rule of a node that runs again, for whatever reason it was started.
    pub fn revived(&self, node: &str) {
        let mut table = self.0.table.lock();
        let of_node =
            |rule: &mut Rule| matches!(&rule.fault, Fault::Kill { node: killed } if killed == node);
        for rule in table.rules.extract_if(.., of_node) {
            tracing::info!(id = rule.id, fault = %rule.fault, "fault healed");
        }
        self.count(&table);
    }

    /// All active rules, the oldest first.
    pub fn rules(&self) -> Vec<Rule> {
        self.0.table.lock().rules.clone()
    }

    pub fn reached(&self, height: u64) {
        let mut table = self.0.table.lock();
        if height > table.head {
            table.head = height;
            let over =
                |rule: &Rule| matches!(rule.until, Some(Until::Height(end)) if end <= height);
            if table.rules.iter().any(over) {
                self.0.changed.send_replace(());
            }
        }
    }

    /// The numbers of the rules that are due to end, and the next time at which one ends.
    pub fn due(&self, now: SystemTime) -> (Vec<u64>, Option<SystemTime>) {
        let table = self.0.table.lock();
        let over = |rule: &&Rule| rule.until.is_some_and(|until| until.is_over(now, table.head));
        let due = table.rules.iter().filter(over).map(|rule| rule.id).collect();
        let times = table.rules.iter().filter_map(|rule| match rule.until {
            Some(Until::Time(end)) if end > now => Some(end),
            _ => None,
        });
        (due, times.min())
    }

    /// Keeps a rule until it is removed by request, because ending it failed.
    pub fn keep(&self, id: u64) {
        let mut table = self.0.table.lock();
        if let Some(rule) = table.rules.iter_mut().find(|rule| rule.id == id) {
            rule.until = None;
        }
    }

    /// Notified when the answer of [`Self::due`] may have changed.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    /// Notes the address of a node that another process runs, in place of its last one. A seat that
    /// a node of this process has stays.
    pub fn met(&self, address: SocketAddr, node: &str) {
        let mut table = self.0.table.lock();
        let (seat, node) = (PeerSeat::Udp(address), Arc::<str>::from(node));
        match table.seats.get(&seat).cloned() {
            Some(holder) if holder == node => return,
            // Another process has its port now.
            Some(holder) if table.met.get(&holder) == Some(&seat) => {
                table.met.remove(&holder);
            }
            Some(_) => return,
            None => {}
        }
        if let Some(before) = table.met.insert(node.clone(), seat.clone())
            && table.seats.get(&before) == Some(&node)
        {
            table.seats.remove(&before);
        }
        table.seats.insert(seat, node);
    }

    /// Whether another process runs the node at this seat.
    fn is_apart(&self, seat: &PeerSeat) -> bool {
        let table = self.0.table.lock();
        table.seats.get(seat).is_some_and(|node| table.met.get(node) == Some(seat))
    }

    fn seat(&self, seat: PeerSeat, node: Arc<str>) {
        self.0.table.lock().seats.insert(seat, node);
    }

    /// Removes the node from a seat, unless another node has taken it.
    fn vacate(&self, seat: &PeerSeat, node: &Arc<str>) {
        let seats = &mut self.0.table.lock().seats;
        if seats.get(seat) == Some(node) {
            seats.remove(seat);
        }
    }

    fn is_quiet(&self) -> bool {
        self.0.links.load(Ordering::Relaxed) == 0
    }

    fn decide(&self, from: LinkEnd<'_>, to: LinkEnd<'_>) -> Decision {
        let table = &mut *self.0.table.lock();
        let (from, to) = (from.name(&table.seats), to.name(&table.seats));
        let (from, to) = (from.as_deref(), to.as_deref());
        let matching = |rule: &&mut Rule| rule.fault.concerns(from, to);
        let (mut delay, mut ordered, mut delayed) = (Duration::ZERO, true, None);
        for rule in table.rules.iter_mut().filter(matching) {
            match &rule.fault {
                Fault::Kill { .. } | Fault::Lie { .. } => {}
                Fault::Pause { .. } | Fault::Partition { .. } => {
                    rule.tally.drop_one();
                    return Decision::Drop;
                }
                Fault::Loss { per_mille, .. } => {
                    let per_mille = u64::from(*per_mille);
                    if rule.draw(from, to) % 1_000 < per_mille {
                        rule.tally.drop_one();
                        return Decision::Drop;
                    }
                }
                Fault::Latency { by, jitter, .. } => {
                    let (by, jitter) = (*by, *jitter);
                    delay += by;
                    if !jitter.is_zero() {
                        ordered = false;
                        let range = u64::try_from(jitter.as_nanos()).unwrap_or(u64::MAX);
                        delay +=
                            Duration::from_nanos(rule.draw(from, to) % range.saturating_add(1));
                    }
                    delayed = Some(rule.tally.clone());
                }
            }
        }
        match delayed {
            None => Decision::Pass,
            Some(tally) => {
                tally.delay_one();
                Decision::Delay { by: delay, ordered, tally }
            }
        }
    }

    /// The vote of a validator that sees `seen`: its lies change it in the order in which they were
    /// laid.
    fn vote(&self, validator: &str, order: &Order, seen: Bitmap) -> Bitmap {
        let table = self.0.table.lock();
        table.rules.iter().fold(seen, |vote, rule| match &rule.fault {
            Fault::Lie { node, lie, of } if node == validator => {
                let told = lie.tell(of.as_ref().map(|(_, runner)| runner), order, &vote);
                if told != vote {
                    rule.tally.lie_once();
                }
                told
            }
            _ => vote,
        })
    }

    fn count(&self, table: &FaultTable) {
        let links = table.rules.iter().filter(|rule| rule.fault.concerns_links()).count();
        self.0.links.store(links, Ordering::Relaxed);
        self.0.changed.send_replace(());
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rules().iter().map(|rule| &rule.fault)).finish()
    }
}

#[derive(Clone, Copy)]
enum LinkEnd<'a> {
    Named(&'a Arc<str>),
    At(&'a PeerSeat),
}

impl LinkEnd<'_> {
    fn name(self, seats: &BTreeMap<PeerSeat, Arc<str>>) -> Option<Arc<str>> {
        match self {
            Self::Named(name) => Some(name.clone()),
            Self::At(seat) => seats.get(seat).cloned(),
        }
    }
}

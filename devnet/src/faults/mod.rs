//! Faults laid on purpose on a devnet: on the links between its nodes, and on what validators vote.
//!
//! [`Faults`] is the table of all that is in force, one per devnet. A [`Tap`] is a node's way to
//! it: whatever carries messages asks its node's tap what becomes of each, and gets a [`Decision`].
//! Two places ask, each for all links of its kind, in both directions:
//!
//! * what a validator receives from another one ([`crate::consensus::faulty`]): messages;
//! * what a node sends over QUIC ([`crate::transport::quic`]): UDP datagrams.
//!
//! What a validator votes about runners goes by its tap too ([`Tap::vote`]).
//!
//! All nodes of a devnet live in one process, so one end of a link is enough. A node that
//! the table was not told of (a runner in a process of its own) is in no rule by name.
//!
//! Several rules may match one message: one that cuts the link decides, else losses are drawn in
//! the order in which the rules were laid, else delays add up. Without rules, asking is one atomic
//! load.
//!
//! # Draws
//!
//! Loss and jitter are drawn from keccak256 over the rule's seed, its kind and place, the link
//! and its direction, and how many messages of that direction the rule has drawn for before. So the
//! n-th message of a link meets the same fate in every run with the same seed. Which message is
//! the n-th is up to the timing of a real devnet.

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

/// What becomes of a message.
#[derive(Debug, Clone)]
pub enum Decision {
    /// It goes on its way.
    Pass,
    /// It is lost.
    Drop,
    /// It goes on its way later.
    Delay {
        /// How much later.
        by: Duration,
        /// Whether it has to stay behind those of its link that came before it.
        ordered: bool,
        /// Whose delay it is: where too many wait, what is lost counts there.
        tally: Arc<Tally>,
    },
}

/// By what a carrier knows the node at the other end of a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seat {
    /// By the UDP address that its QUIC endpoint is bound to.
    Udp(SocketAddr),
    /// By its consensus key, in its encoding.
    Key(Vec<u8>),
}

/// All faults in force. Cloning shares the table.
#[derive(Clone)]
pub struct Faults(Arc<Inner>);

struct Inner {
    /// What draws are seeded with where a rule does not say.
    seed: u64,
    /// How many rules concern links.
    links: AtomicUsize,
    table: Mutex<Table>,
    /// Told of each change that may be of interest to whoever ends rules in time.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Table {
    rules: Vec<Rule>,
    /// How many rules were ever laid.
    laid: u64,
    /// The newest height that a validator has got to.
    head: u64,
    seats: BTreeMap<Seat, Arc<str>>,
}

impl Faults {
    /// An empty table of a devnet with this seed.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Inner {
            seed,
            links: AtomicUsize::new(0),
            table: Mutex::default(),
            changed: watch::Sender::new(()),
        }))
    }

    /// Lays a fault, with a seed of its own if it is given one, and shows the rule. It takes the
    /// place of an older rule of the same kind at the same place; there is one partition at a time.
    /// It ends at `until`, see [`Self::due`].
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

    /// Takes a rule away, by its number.
    pub fn lift(&self, id: u64) -> Option<Rule> {
        let mut table = self.0.table.lock();
        let place = table.rules.iter().position(|rule| rule.id == id)?;
        let rule = table.rules.remove(place);
        self.count(&table);
        Some(rule)
    }

    /// A killed node runs again, whoever has started it.
    pub fn revived(&self, node: &str) {
        let mut table = self.0.table.lock();
        table
            .rules
            .retain(|rule| !matches!(&rule.fault, Fault::Kill { node: killed } if killed == node));
        self.count(&table);
    }

    /// All that is in force, the oldest first.
    pub fn rules(&self) -> Vec<Rule> {
        self.0.table.lock().rules.clone()
    }

    /// A validator has got to this height.
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

    /// The numbers of the rules whose end has come, and when the next one ends that ends by time.
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

    /// Lets a rule stay until somebody takes it away: its end could not be brought about.
    pub fn keep(&self, id: u64) {
        let mut table = self.0.table.lock();
        if let Some(rule) = table.rules.iter_mut().find(|rule| rule.id == id) {
            rule.until = None;
        }
    }

    /// Told when [`Self::due`] may have another answer.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    /// The node that sits there is called so, from now on.
    fn seat(&self, seat: Seat, node: Arc<str>) {
        self.0.table.lock().seats.insert(seat, node);
    }

    /// The node does not sit there any more.
    fn vacate(&self, seat: &Seat, node: &Arc<str>) {
        let seats = &mut self.0.table.lock().seats;
        if seats.get(seat) == Some(node) {
            seats.remove(seat);
        }
    }

    /// Whether nothing is in force on any link.
    fn is_quiet(&self) -> bool {
        self.0.links.load(Ordering::Relaxed) == 0
    }

    /// What becomes of a message; each end is a name, or where a node sits.
    fn decide(&self, from: End<'_>, to: End<'_>) -> Decision {
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

    /// What a validator votes where it sees `seen`: its lies change that in the order in which they
    /// were laid.
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

    /// The table has other rules than before.
    fn count(&self, table: &Table) {
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

/// An end of a link.
#[derive(Clone, Copy)]
enum End<'a> {
    Named(&'a Arc<str>),
    At(&'a Seat),
}

impl End<'_> {
    fn name(self, seats: &BTreeMap<Seat, Arc<str>>) -> Option<Arc<str>> {
        match self {
            Self::Named(name) => Some(name.clone()),
            Self::At(seat) => seats.get(seat).cloned(),
        }
    }
}

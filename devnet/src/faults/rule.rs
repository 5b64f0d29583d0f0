//! One fault: its effect, place, end and tally.

use super::Lie;
use cowboy_engine::primitives::{Address, keccak256};
use cowboy_host::duration::Plain;
use jiff::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

/// Maximum delay of a message by one rule, including jitter. It is longer than any timeout between
/// nodes; beyond that a link is as good as cut.
pub const MAX_DELAY: Duration = Duration::from_secs(60);

/// The kind and place of a fault. Nodes are given by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A node has ended as in a crash, and its links with it.
    Kill { node: String },
    /// A node receives nothing and its messages reach no one; the node itself does not know.
    Pause { node: String },
    /// Nothing passes between groups. Nodes outside all groups form one more group.
    Partition {
        /// No node is in two groups.
        groups: Vec<BTreeSet<String>>,
    },
    /// Messages take longer, in both directions.
    Latency {
        at: At,
        by: Duration,
        /// Maximum additional delay, drawn evenly.
        jitter: Duration,
    },
    /// Messages are lost, in both directions.
    Loss { at: At, per_mille: u16 },
    /// A validator's votes misrepresent the runners that it sees.
    Lie {
        node: String,
        lie: Lie,
        /// The runner lied about, by name and address; `None`: all runners.
        of: Option<(String, Address)>,
    },
}

/// The links that a fault affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    Node(String),
    /// The link between two nodes, the lesser name first.
    Link(String, String),
}

impl At {
    /// The link between two nodes, in any order.
    pub fn link(one: String, other: String) -> Self {
        if one <= other { Self::Link(one, other) } else { Self::Link(other, one) }
    }

    fn concerns(&self, from: Option<&str>, to: Option<&str>) -> bool {
        let is = |end: Option<&str>, name: &String| end == Some(name.as_str());
        match self {
            Self::Node(node) => is(from, node) || is(to, node),
            Self::Link(a, b) => (is(from, a) && is(to, b)) || (is(from, b) && is(to, a)),
        }
    }

    fn names(&self, node: &str) -> bool {
        match self {
            Self::Node(name) => name == node,
            Self::Link(a, b) => a == node || b == node,
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => f.write_str(node),
            Self::Link(a, b) => write!(f, "{a}..{b}"),
        }
    }
}

impl Fault {
    /// Whether it was laid on this node or on one of its links. A partition is laid on all nodes.
    pub fn is_laid_on(&self, node: &str) -> bool {
        match self {
            Self::Kill { node: name }
            | Self::Pause { node: name }
            | Self::Lie { node: name, .. } => name == node,
            Self::Partition { .. } => false,
            Self::Latency { at, .. } | Self::Loss { at, .. } => at.names(node),
        }
    }

    /// Whether nodes carry it out on messages or votes.
    pub const fn concerns_messages(&self) -> bool {
        !matches!(self, Self::Kill { .. })
    }

    pub(super) const fn concerns_links(&self) -> bool {
        !matches!(self, Self::Kill { .. } | Self::Lie { .. })
    }

    /// Whether it affects messages between these nodes; `None`: a node without a name.
    pub(super) fn concerns(&self, from: Option<&str>, to: Option<&str>) -> bool {
        match self {
            Self::Kill { .. } | Self::Lie { .. } => false,
            Self::Pause { node } => from == Some(node.as_str()) || to == Some(node.as_str()),
            Self::Partition { groups } => {
                let group = |end: Option<&str>| {
                    groups.iter().position(|group| end.is_some_and(|end| group.contains(end)))
                };
                group(from) != group(to)
            }
            Self::Latency { at, .. } | Self::Loss { at, .. } => at.concerns(from, to),
        }
    }

    pub(super) fn is_replaced_by(&self, newer: &Self) -> bool {
        match (self, newer) {
            (Self::Kill { node: a }, Self::Kill { node: b })
            | (Self::Pause { node: a }, Self::Pause { node: b }) => a == b,
            (Self::Partition { .. }, Self::Partition { .. }) => true,
            (Self::Latency { at: a, .. }, Self::Latency { at: b, .. })
            | (Self::Loss { at: a, .. }, Self::Loss { at: b, .. }) => a == b,
            (Self::Lie { node: a, of: of_a, .. }, Self::Lie { node: b, of: of_b, .. }) => {
                a == b && of_a == of_b
            }
            _ => false,
        }
    }

    /// The label that separates its draws from those of other rules with the same seed.
    fn label(&self) -> String {
        match self {
            Self::Latency { at, .. } => format!("latency {at}"),
            Self::Loss { at, .. } => format!("loss {at}"),
            Self::Kill { .. } | Self::Pause { .. } | Self::Partition { .. } | Self::Lie { .. } => {
                String::new()
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill { node } => write!(f, "kill {node}"),
            Self::Pause { node } => write!(f, "pause {node}"),
            Self::Partition { groups } => {
                let names = |group: &BTreeSet<String>| {
                    group.iter().map(String::as_str).collect::<Vec<_>>().join(",")
                };
                let groups: Vec<_> = groups.iter().map(names).collect();
                write!(f, "partition {}", groups.join(" | "))
            }
            Self::Latency { at, by, jitter } if jitter.is_zero() => {
                write!(f, "latency of {} on {at}", Plain(*by))
            }
            Self::Latency { at, by, jitter } => {
                write!(f, "latency of {} to {} on {at}", Plain(*by), Plain(*by + *jitter))
            }
            Self::Loss { at, per_mille } => {
                write!(f, "loss of {}.{} % on {at}", per_mille / 10, per_mille % 10)
            }
            Self::Lie { node, lie, of: None } => write!(f, "lie {lie} by {node}"),
            Self::Lie { node, lie, of: Some((runner, _)) } => {
                write!(f, "lie {lie} of {runner} by {node}")
            }
        }
    }
}

/// When a rule ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    Time(SystemTime),
    /// As soon as any validator has reached this height.
    Height(u64),
}

impl Until {
    pub(super) fn is_over(self, now: SystemTime, head: u64) -> bool {
        match self {
            Self::Time(end) => end <= now,
            Self::Height(end) => end <= head,
        }
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(end) => match Timestamp::try_from(*end) {
                Ok(end) => write!(f, "{end:.0}"),
                // Beyond the years with four digits.
                Err(_) => f.write_str("for ever"),
            },
            Self::Height(height) => write!(f, "block {height}"),
        }
    }
}

/// Counts of a rule's effects on messages and votes so far.
#[derive(Debug, Default)]
pub struct Tally {
    dropped: AtomicU64,
    delayed: AtomicU64,
    lies: AtomicU64,
}

impl Tally {
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub fn delayed(&self) -> u64 {
        self.delayed.load(Ordering::Relaxed)
    }

    pub fn lies(&self) -> u64 {
        self.lies.load(Ordering::Relaxed)
    }

    pub(super) fn lie_once(&self) {
        self.lies.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn drop_one(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn delay_one(&self) {
        self.delayed.fetch_add(1, Ordering::Relaxed);
    }
}

/// An active fault. Clones share its tally.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its number: rules count from 1 in the order in which they were laid.
    pub id: u64,
    pub fault: Fault,
    pub seed: u64,
    /// The highest height when it was laid.
    pub since: u64,
    pub until: Option<Until>,
    pub tally: Arc<Tally>,
    /// Number of draws so far, by sender and receiver.
    drawn: BTreeMap<(String, String), u64>,
}

impl Rule {
    pub(super) fn new(id: u64, fault: Fault, seed: u64, since: u64, until: Option<Until>) -> Self {
        Self { id, fault, seed, since, until, tally: Arc::default(), drawn: BTreeMap::new() }
    }

    /// The next draw for a link's direction; evenly distributed.
    pub(super) fn draw(&mut self, from: Option<&str>, to: Option<&str>) -> u64 {
        let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
        let drawn = self.drawn.entry((from.to_owned(), to.to_owned())).or_default();
        let (seed, count, label) =
            (self.seed.to_be_bytes(), drawn.to_be_bytes(), self.fault.label());
        *drawn += 1;
        // Names have no spaces, so the parts are unambiguous.
        let parts = [label.as_bytes(), b" ", from.as_bytes(), b" ", to.as_bytes(), b" "];
        let hash = keccak256(&[&[seed.as_slice()], &parts[..], &[count.as_slice()]].concat());
        let (first, _) = hash.0.split_at(8);
        u64::from_be_bytes(first.try_into().expect("eight bytes"))
    }
}

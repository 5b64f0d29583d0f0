//! One fault: what it does, where, until when, and what it has done.

use super::Lie;
use crate::duration::Plain;
use cowboy_engine::primitives::{Address, keccak256};
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

/// The most that one rule delays a message, jitter included. Longer than any timeout between nodes:
/// beyond that a link is as good as cut.
pub const MAX_DELAY: Duration = Duration::from_secs(60);

/// What goes wrong, and where. Nodes are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A node has ended as in a crash. Its links are gone with it.
    Kill {
        /// Which.
        node: String,
    },
    /// Nothing reaches a node, and nothing it says reaches others; it does not know.
    Pause {
        /// Which.
        node: String,
    },
    /// Nothing passes between groups. Whoever is in none of them is in a last one.
    Partition {
        /// No node is in two.
        groups: Vec<BTreeSet<String>>,
    },
    /// Messages take longer, in both directions.
    Latency {
        /// Where.
        at: At,
        /// What each takes longer.
        by: Duration,
        /// What it takes longer on top of that, at most: drawn evenly.
        jitter: Duration,
    },
    /// Messages are lost, in both directions.
    Loss {
        /// Where.
        at: At,
        /// How many of a thousand.
        per_mille: u16,
    },
    /// A validator's votes do not say which runners it sees.
    Lie {
        /// Which validator.
        node: String,
        /// What they say.
        lie: Lie,
        /// Of which runner, by name and address; of all where it is left out.
        of: Option<(String, Address)>,
    },
}

/// Some links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// All of a node's.
    Node(String),
    /// The one between two nodes, the lesser name first.
    Link(String, String),
}

impl At {
    /// The link between two nodes, named in any order.
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
    /// Whether it was laid on this node, or on a link of it. A partition is laid on all.
    pub fn is_laid_on(&self, node: &str) -> bool {
        match self {
            Self::Kill { node: name }
            | Self::Pause { node: name }
            | Self::Lie { node: name, .. } => name == node,
            Self::Partition { .. } => false,
            Self::Latency { at, .. } | Self::Loss { at, .. } => at.names(node),
        }
    }

    /// Whether it does anything to messages.
    pub(super) const fn concerns_links(&self) -> bool {
        !matches!(self, Self::Kill { .. } | Self::Lie { .. })
    }

    /// Whether it does anything to messages between these; `None`: a node without a name.
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

    /// What tells its draws from those of other rules with the same seed.
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
    /// At this time.
    Time(SystemTime),
    /// As soon as some validator has got to this height.
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
                // Beyond the years that have four digits.
                Err(_) => f.write_str("for ever"),
            },
            Self::Height(height) => write!(f, "block {height}"),
        }
    }
}

/// What a rule has done to messages and votes so far.
#[derive(Debug, Default)]
pub struct Tally {
    dropped: AtomicU64,
    delayed: AtomicU64,
    lies: AtomicU64,
}

impl Tally {
    /// Messages it has lost.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Messages it has delayed.
    pub fn delayed(&self) -> u64 {
        self.delayed.load(Ordering::Relaxed)
    }

    /// Votes it has changed.
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

/// A fault in force. A copy shares its tally.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its number: rules are counted from 1 as they are laid.
    pub id: u64,
    /// What it does, and where.
    pub fault: Fault,
    /// What its draws are seeded with.
    pub seed: u64,
    /// The newest height when it was laid.
    pub since: u64,
    /// When it ends by itself.
    pub until: Option<Until>,
    /// What it has done.
    pub tally: Arc<Tally>,
    /// Draws made so far, by sender and receiver.
    drawn: BTreeMap<(String, String), u64>,
}

impl Rule {
    pub(super) fn new(id: u64, fault: Fault, seed: u64, since: u64, until: Option<Until>) -> Self {
        Self { id, fault, seed, since, until, tally: Arc::default(), drawn: BTreeMap::new() }
    }

    /// The next number of a link's direction; evenly distributed.
    pub(super) fn draw(&mut self, from: Option<&str>, to: Option<&str>) -> u64 {
        let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
        let drawn = self.drawn.entry((from.to_owned(), to.to_owned())).or_default();
        let (seed, count, label) =
            (self.seed.to_be_bytes(), drawn.to_be_bytes(), self.fault.label());
        *drawn += 1;
        // Names have no spaces: the parts cannot be taken for others.
        let parts = [label.as_bytes(), b" ", from.as_bytes(), b" ", to.as_bytes(), b" "];
        let hash = keccak256(&[&[seed.as_slice()], &parts[..], &[count.as_slice()]].concat());
        let (first, _) = hash.0.split_at(8);
        u64::from_be_bytes(first.try_into().expect("eight bytes"))
    }
}

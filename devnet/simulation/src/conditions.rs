//! The effect of active faults on nodes and links. It is recomputed from all faults whenever one
//! begins or ends, so faults may overlap in any way.

use crate::script::{Fault, Groups, Links, Node, Place, Share};
use commonware_p2p::simulated as p2p;
use commonware_utils::Probability;
use cowboy_devnet::{faults::Lie, transport::simulated};
use std::{fmt, time::Duration};

/// An active fault with its subject already drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    Kill(Node),
    /// The node receives and sends nothing.
    Pause(Node),
    Partition(Groups),
    /// The additional latency, and its jitter.
    Latency(Place, Duration, Duration),
    Loss(Place, Share),
    /// A validator's votes differ from what it sees, for one runner or for all.
    Lie(Node, Lie, Option<Node>),
}

impl Condition {
    /// The effect of a fault, with the `node` that it names or that was drawn; `None` if there is
    /// no such node.
    pub fn of(fault: &Fault, node: Option<Node>) -> Option<Self> {
        let of_node = fault.kill.map(|_| node.map(Self::Kill));
        let of_node = of_node.or_else(|| fault.pause.map(|_| node.map(Self::Pause)));
        if let Some(condition) = of_node {
            return condition;
        }
        let partition = fault.partition.clone().map(Self::Partition);
        let latency = fault.latency.as_ref().map(|it| Self::Latency(it.on, it.delay, it.jitter));
        let loss = fault.loss.as_ref().map(|it| Self::Loss(it.on, it.percent));
        let lie = fault.lie.as_ref().map(|it| Self::Lie(it.on, it.votes, it.of));
        partition.or(latency).or(loss).or(lie)
    }

    /// The node that is down or paused because of it.
    pub const fn node(&self) -> Option<Node> {
        match self {
            Self::Kill(node) | Self::Pause(node) => Some(*node),
            _ => None,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill(node) => write!(f, "kill {node}"),
            Self::Pause(node) => write!(f, "pause {node}"),
            Self::Partition(groups) => write!(f, "partition {groups}"),
            Self::Latency(place, delay, _) => {
                write!(f, "latency +{} ms on {place}", delay.as_millis())
            }
            Self::Loss(place, share) => write!(f, "loss {share} on {place}"),
            Self::Lie(node, lie, None) => write!(f, "lie {lie} by {node}"),
            Self::Lie(node, lie, Some(runner)) => write!(f, "lie {lie} of {runner} by {node}"),
        }
    }
}

/// The properties of a link under all conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Travel {
    pub latency: Duration,
    /// The random part, added to the latency or around it.
    pub jitter: Duration,
    pub loss: Share,
}

impl From<Links> for Travel {
    fn from(links: Links) -> Self {
        let Links { latency, jitter, loss } = links;
        Self { latency, jitter, loss }
    }
}

impl Travel {
    /// The link as the validators' network models it.
    pub fn between_validators(self) -> p2p::Link {
        let passing = u64::from(1_000 - self.loss.per_mille());
        p2p::Link {
            latency: self.latency,
            jitter: self.jitter,
            success_rate: Probability::new(passing, 1_000).expect("a share is at most all"),
        }
    }

    /// The link as the runners' network models it, which retransmits lost messages.
    pub fn to_runners(self) -> simulated::SimulatedLink {
        simulated::SimulatedLink {
            latency: self.latency,
            jitter: self.jitter,
            loss: f64::from(self.loss.per_mille()) / 1_000.0,
        }
    }
}

/// Whether a kill of the node is in force.
pub fn is_down(conditions: &[Condition], node: Node) -> bool {
    conditions.contains(&Condition::Kill(node))
}

/// The properties of the link between two nodes; `None` if nothing passes.
pub fn travel(conditions: &[Condition], usual: Links, a: Node, b: Node) -> Option<Travel> {
    let mut travel = Travel::from(usual);
    for condition in conditions {
        match condition {
            Condition::Pause(node) if *node == a || *node == b => return None,
            Condition::Partition(groups) if groups.of(a) != groups.of(b) => return None,
            Condition::Latency(place, delay, jitter) if place.has(a, b) => {
                travel.latency = travel.latency.saturating_add(*delay);
                travel.jitter = travel.jitter.saturating_add(*jitter);
            }
            Condition::Loss(place, share) if place.has(a, b) => {
                travel.loss = travel.loss.and(*share);
            }
            _ => {}
        }
    }
    // A link on which nothing arrives counts as absent.
    (travel.loss < Share::per_cent(100)).then_some(travel)
}

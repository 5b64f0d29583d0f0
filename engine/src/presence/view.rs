//! One validator's own observations of the runners (spec connectivity.md §3, CIP-11 §7.2): the bits
//! of its own votes, before the chain concludes anything from them.
//!
//! Runner i counts as present at head H iff all of these hold:
//!
//! * its control stream is open and authenticated ([`LocalView::opened`], [`LocalView::lost`]);
//! * a valid ping arrived within the last
//!   [`presence_timeout_blocks`](super::Connectivity::presence_timeout_blocks)
//!   ([`LocalView::pinged`]), and no dispatch has failed hard since ([`LocalView::failed`]);
//! * it takes new work: it has not said otherwise ([`LocalView::accepting`]);
//! * the chain lets it be connected to this validator, as of the block that is voted on: it is
//!   registered, has enough stake, and has this validator in its subset;
//! * it has not withdrawn something that a job in the mempool needs ([`LocalView::changed`],
//!   [`LocalView::needed`]).
//!
//! The chain decides the last but one condition, which is asked for each bit when the vote is made
//! ([`LocalView::bitmap`]), because a connection may outlive a runner's right to it.
//!
//! Nothing else sets a bit; polling does not. The state per runner is bounded, and only open
//! connections have an entry: admission bounds their number by the registry.

use super::Bitmap;
use crate::primitives::{Address, Height};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// Maximum number of withdrawn labels kept per runner; further ones are dropped, because
/// withdrawing is advisory (CIP-11 §6.5).
pub const MAX_WITHDRAWN: usize = 256;

/// Prefix that distinguishes pools from other labels.
pub const POOL_PREFIX: &str = "pool:";

/// Something that a job needs and a runner may lack for a while.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// A job kind, a model alias, an MCP server, a trusted execution environment.
    Capability(String),
    Entitlement(String),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capability(name) => f.write_str(name),
            Self::Entitlement(pool) => write!(f, "{POOL_PREFIX}{pool}"),
        }
    }
}

/// The first condition of presence that a runner does not meet at a validator, not counting the
/// chain's condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmet {
    Connection,
    /// No valid ping arrived in time, or none since the last hard failure of a dispatch.
    Ping,
    /// It last said that it takes no work.
    Work,
    /// It withdrew something that a job in the mempool needs.
    Label,
}

/// One validator's view of the runners connected to it.
#[derive(Debug, Clone, Default)]
pub struct LocalView {
    links: BTreeMap<Address, ViewLink>,
    needed: BTreeSet<Label>,
}

#[derive(Debug, Clone)]
struct ViewLink {
    /// The validator's head when the last valid ping arrived; `None` before the first, and after
    /// a hard failure.
    pinged_at: Option<Height>,
    accepting: bool,
    withdrawn: BTreeSet<Label>,
}

impl LocalView {
    /// The runner completed its handshake. Replaces the state of an earlier connection: the runner
    /// is absent until it pings.
    pub fn opened(&mut self, runner: Address) {
        let link = ViewLink { pinged_at: None, accepting: true, withdrawn: BTreeSet::new() };
        self.links.insert(runner, link);
    }

    /// The runner's connection is gone; it is absent immediately.
    pub fn lost(&mut self, runner: &Address) {
        self.links.remove(runner);
    }

    /// A valid ping arrived while the validator's head was `head`. Ignored without a connection.
    pub fn pinged(&mut self, runner: &Address, head: Height) {
        self.with(runner, |link| link.pinged_at = Some(head));
    }

    /// An assignment was not answered in time (spec §6): absent until the next valid ping.
    pub fn failed(&mut self, runner: &Address) {
        self.with(runner, |link| link.pinged_at = None);
    }

    pub fn accepting(&mut self, runner: &Address, accepting: bool) {
        self.with(runner, |link| link.accepting = accepting);
    }

    /// The runner can serve `added` again and cannot serve `removed` for now.
    pub fn changed(
        &mut self,
        runner: &Address,
        added: impl IntoIterator<Item = Label>,
        removed: impl IntoIterator<Item = Label>,
    ) {
        self.with(runner, |link| {
            for label in added {
                link.withdrawn.remove(&label);
            }
            let room = MAX_WITHDRAWN.saturating_sub(link.withdrawn.len());
            link.withdrawn.extend(removed.into_iter().take(room));
        });
    }

    /// Sets the labels that the jobs in the mempool need, all of them together.
    pub fn needed(&mut self, labels: BTreeSet<Label>) {
        self.needed = labels;
    }

    /// Whether some connected runner has withdrawn a label; otherwise [`Self::needed`] does not
    /// matter.
    pub fn has_withdrawals(&self) -> bool {
        self.links.values().any(|link| !link.withdrawn.is_empty())
    }

    /// The reason why this validator does not count the runner as present at `head`, without the
    /// chain's condition. A ping counts for `timeout` blocks. `None` if it counts as present.
    pub fn unmet(&self, runner: &Address, head: Height, timeout: u64) -> Option<Unmet> {
        let Some(link) = self.links.get(runner) else { return Some(Unmet::Connection) };
        if link.pinged_at.is_none_or(|at| head.since(at) > timeout) {
            return Some(Unmet::Ping);
        }
        if !link.accepting {
            return Some(Unmet::Work);
        }
        (!link.withdrawn.is_disjoint(&self.needed)).then_some(Unmet::Label)
    }

    pub fn withdrawn(&self, runner: &Address) -> impl Iterator<Item = &Label> {
        self.links.get(runner).into_iter().flat_map(|link| &link.withdrawn)
    }

    /// The validator's head at the runner's last valid ping since its connection or last hard
    /// failure.
    pub fn last_ping(&self, runner: &Address) -> Option<Height> {
        self.links.get(runner)?.pinged_at
    }

    /// The bits of a vote composed at `head`, indexed by `registry`: the order of registration as
    /// of the parent of the block voted on (spec §4). `may` tells, for each runner that could be
    /// present, whether the chain lets it be connected here, as of that block. A ping counts for
    /// `timeout` blocks.
    ///
    /// # Panics
    ///
    /// If there are more than 2^32 runners, which no registry admits.
    pub fn bitmap(
        &self,
        registry: &[Address],
        head: Height,
        timeout: u64,
        mut may: impl FnMut(&Address) -> bool,
    ) -> Bitmap {
        let len = u32::try_from(registry.len()).expect("a registry is far below 2^32 runners");
        Bitmap::from_fn(len, |i| {
            let runner = &registry[i as usize];
            self.unmet(runner, head, timeout).is_none() && may(runner)
        })
    }

    /// Runners with an open connection, by address.
    pub fn connected(&self) -> impl Iterator<Item = &Address> {
        self.links.keys()
    }

    fn with(&mut self, runner: &Address, change: impl FnOnce(&mut ViewLink)) {
        if let Some(link) = self.links.get_mut(runner) {
            change(link);
        }
    }
}

#[cfg(test)]
mod tests;

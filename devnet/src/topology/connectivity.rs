//! `connectivity`: how runners and validators keep in touch, and for how long the runner used last
//! is favoured: first values of what is governed.
//!
//! Bounds are those of the `system:cip11:` keys of [`timer::Governed::KEYS`](Governed::KEYS), which
//! also hold for every later value.

use super::Within;
use cowboy_engine::{
    presence::Connectivity,
    timer::{Governed, ParameterError, Relation},
};
use serde::{Deserialize, Serialize};

/// Blocks of a year at a block a second.
const YEAR: u64 = 31_536_000;

/// `connectivity`: first values of the parameters of CIP-11 §13.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `connectivity`")]
pub struct ConnectivitySection {
    /// Blocks of a subset epoch.
    pub subset_epoch_blocks: Within<8, YEAR>,
    /// Blocks after an advance of the subset epoch in which the subsets of before count too.
    pub overlap_blocks: Within<1, 65_536>,
    /// Blocks from one ping of a connected runner to the next.
    pub heartbeat_blocks: Within<1, 30>,
    /// Blocks for which a ping makes a runner present, and for which a P(h) counts.
    pub presence_timeout_blocks: Within<2, { Connectivity::MAX_PRESENCE_TIMEOUT }>,
    /// Blocks within which a runner has to answer an assignment.
    pub ack_timeout_blocks: Within<1, 60>,
    /// Blocks after which the last on-chain heartbeat of a runner is stale.
    pub stale_heartbeat_blocks: Within<64, YEAR>,
    /// Blocks through which the runner used last is favoured.
    pub mru_ttl_blocks: Within<1, YEAR>,
    /// By how much the first draw multiplies its weight.
    pub mru_multiplier: Within<1, { Connectivity::MAX_MULTIPLIER }>,
}

impl Default for ConnectivitySection {
    fn default() -> Self {
        Self::of(&Connectivity::DEFAULT)
    }
}

impl ConnectivitySection {
    /// What a genesis says, as written. Its values lie in the ranges of the file.
    pub fn of(connectivity: &Connectivity) -> Self {
        Self {
            subset_epoch_blocks: within(connectivity.subset_epoch_blocks),
            overlap_blocks: within(connectivity.overlap_blocks),
            heartbeat_blocks: within(connectivity.heartbeat_blocks),
            presence_timeout_blocks: within(connectivity.presence_timeout_blocks),
            ack_timeout_blocks: within(connectivity.ack_timeout_blocks),
            stale_heartbeat_blocks: within(connectivity.stale_heartbeat_blocks),
            mru_ttl_blocks: within(connectivity.mru_ttl_blocks),
            mru_multiplier: within(connectivity.mru_multiplier),
        }
    }

    /// What a genesis says.
    pub const fn params(&self) -> Connectivity {
        Connectivity {
            subset_epoch_blocks: self.subset_epoch_blocks.get(),
            overlap_blocks: self.overlap_blocks.get(),
            heartbeat_blocks: self.heartbeat_blocks.get(),
            presence_timeout_blocks: self.presence_timeout_blocks.get(),
            ack_timeout_blocks: self.ack_timeout_blocks.get(),
            stale_heartbeat_blocks: self.stale_heartbeat_blocks.get(),
            mru_ttl_blocks: self.mru_ttl_blocks.get(),
            mru_multiplier: self.mru_multiplier.get(),
        }
    }

    /// What is wrong with the fields together: which field, and why. Of two that are not in order
    /// it is one that is not as by default.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        self.params().check().map_err(|error| {
            let ParameterError::ParameterConflict { lower, low, relation, upper, high } = error
            else {
                return ("", error.to_string());
            };
            let default = Governed::default().get(lower);
            let field = |key: &'static str| key.rsplit(':').next().unwrap_or(key);
            let (lower, upper) = (field(lower), field(upper));
            if default == Some(low) {
                let more = match relation {
                    Relation::AtMost => "at least",
                    Relation::Below => "more than",
                };
                return (upper, format!("{high}: expected {more} {low}, which is `{lower}`"));
            }
            let less = match relation {
                Relation::AtMost => "at most",
                Relation::Below => "less than",
            };
            (lower, format!("{low}: expected {less} {high}, which is `{upper}`"))
        })
    }
}

fn within<const MIN: u64, const MAX: u64>(number: u64) -> Within<MIN, MAX> {
    Within::new(number).expect("a plan's numbers lie in the ranges of the file")
}

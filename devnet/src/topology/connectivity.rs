//! `connectivity`: how runners and validators stay connected, and for how long the most recently
//! used runner is favoured. These are the initial values of governed parameters.
//!
//! The bounds are those of the `system:cip11:` keys of [`timer::Governed::KEYS`](Governed::KEYS),
//! which also apply to all later values.

use super::value::numbers;
use cowboy_engine::{
    presence::Connectivity,
    timer::{Governed, ParameterError, Relation, governed::YEAR_BLOCKS},
};
use cowboy_host::within::Within;
use serde::{Deserialize, Serialize};

/// `connectivity`: initial values of the parameters of CIP-11 §13.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "the fields of `connectivity`")]
pub struct ConnectivitySection {
    /// Length of a subset epoch in blocks.
    pub subset_epoch_blocks: Within<8, YEAR_BLOCKS>,
    /// Blocks after a new subset epoch begins in which the previous subsets still count.
    pub overlap_blocks: Within<1, 65_536>,
    /// Blocks between pings of a connected runner.
    pub heartbeat_blocks: Within<1, 30>,
    /// Blocks for which a ping makes a runner present and for which a P(h) counts.
    pub presence_timeout_blocks: Within<2, { Connectivity::MAX_PRESENCE_TIMEOUT }>,
    /// Blocks within which a runner must answer an assignment.
    pub ack_timeout_blocks: Within<1, 60>,
    /// Blocks after which the last on-chain heartbeat of a runner is stale.
    pub stale_heartbeat_blocks: Within<64, YEAR_BLOCKS>,
    /// Blocks for which the most recently used runner is favoured.
    pub mru_ttl_blocks: Within<1, YEAR_BLOCKS>,
    /// The factor on its weight in the first draw.
    pub mru_multiplier: Within<1, { Connectivity::MAX_MULTIPLIER }>,
}

numbers! { ConnectivitySection, params: Connectivity =
    subset_epoch_blocks: subset_epoch_blocks,
    overlap_blocks: overlap_blocks,
    heartbeat_blocks: heartbeat_blocks,
    presence_timeout_blocks: presence_timeout_blocks,
    ack_timeout_blocks: ack_timeout_blocks,
    stale_heartbeat_blocks: stale_heartbeat_blocks,
    mru_ttl_blocks: mru_ttl_blocks,
    mru_multiplier: mru_multiplier
}

impl ConnectivitySection {
    /// Fails with the name of a field that contradicts another one, and the reason. The name is
    /// that of the field which differs from its default.
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

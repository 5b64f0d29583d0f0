//! The phases in which presence takes over from polling (spec connectivity.md §7, CIP-11 §14).

use crate::{
    primitives::{Height, codec::words},
    record,
};

/// What presence and polling are used for: the parameter `migration.phase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// P(H) is derived and not used; runners fetch their jobs by polling.
    Shadow,
    /// Only present runners are drawn; validators push, polling is a fallback for delivery.
    #[default]
    HotPath,
    /// Only present runners are drawn; validators push, there is no polling, and on-chain
    /// heartbeats say nothing about health.
    Sunset,
}

words!(Phase, PhaseError, "a migration phase", "shadow, hot-path or sunset":
    Shadow = "shadow", HotPath = "hot-path", Sunset = "sunset");

impl Phase {
    /// The parameter's key.
    pub const KEY: &'static str = "migration.phase";

    /// Whether draws drop runners that are not present.
    pub const fn filters_presence(self) -> bool {
        !matches!(self, Self::Shadow)
    }

    /// Whether a stale on-chain heartbeat makes a runner unhealthy.
    pub const fn needs_heartbeats(self) -> bool {
        !matches!(self, Self::Sunset)
    }

    /// Whether validators push assignments over the runners' connections.
    pub const fn pushes(self) -> bool {
        !matches!(self, Self::Shadow)
    }

    /// Whether runners may fetch jobs and submit results by polling.
    pub const fn polls(self) -> bool {
        !matches!(self, Self::Sunset)
    }
}

/// The phase of a chain, and its first block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// The phase of the next block.
    pub phase: Phase,
    /// The first block in this phase: at most the next block; 0 if since genesis.
    pub since: Height,
}
record!(Migration { phase, since });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::codec::{from_slice, to_vec};

    #[test]
    fn phases_are_known_by_their_names() {
        for phase in Phase::ALL {
            assert_eq!(phase.name().parse(), Ok(phase));
            assert_eq!(from_slice::<Phase>(&to_vec(&phase)), Ok(phase));
        }
        for other in ["", "Shadow", "hotpath", "hot_path"] {
            assert_eq!(other.parse::<Phase>(), Err(PhaseError(other.to_owned())));
        }
        assert!(from_slice::<Phase>(&to_vec(&"dusk".to_owned())).is_err());
    }
}

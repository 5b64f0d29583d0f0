//! What a program speaks and writes.

use crate::{consensus::PROTOCOL, storage::FORMAT, types::API};
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// The versions of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Versions {
    /// The program's own version.
    pub version: String,
    /// The version of the messages between nodes, of blocks, and of the rules that execute them.
    pub protocol: u32,
    /// The format of a validator's store.
    pub store: u32,
    /// The version of the control API.
    pub api: u32,
}

impl Versions {
    /// Those of this program.
    pub fn own() -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { version, protocol: PROTOCOL, store: FORMAT, api: API }
    }

    /// Fails if a validator of one program cannot be part of a devnet of the other, or cannot go on
    /// with its store.
    pub fn fits(&self, devnet: &Self) -> Result<(), UnfitVersions> {
        let parts = |of: &Self| (of.protocol, of.store, of.api);
        match parts(self) == parts(devnet) {
            true => Ok(()),
            false => Err(UnfitVersions { node: self.clone(), devnet: devnet.clone() }),
        }
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, protocol, store, api } = self;
        write!(f, "{version} (protocol {protocol}, store {store}, API {api})")
    }
}

/// Two programs that do not fit each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the program is {node}, the devnet is {devnet}")]
pub struct UnfitVersions {
    pub node: Versions,
    pub devnet: Versions,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_fit_if_all_but_their_own_versions_are_the_same() {
        let own = Versions::own();
        let newer = Versions { version: "9.9.9".to_owned(), ..own.clone() };
        assert_eq!(newer.fits(&own), Ok(()));
        for other in [
            Versions { protocol: own.protocol + 1, ..newer.clone() },
            Versions { store: own.store + 1, ..newer.clone() },
            Versions { api: own.api + 1, ..newer },
        ] {
            let error = other.fits(&own).unwrap_err().to_string();
            assert!(error.contains(&other.to_string()), "{error}");
            assert!(error.contains(&own.to_string()), "{error}");
        }
    }
}

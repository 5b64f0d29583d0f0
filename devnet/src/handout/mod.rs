//! The files that nodes in processes of their own are given: the genesis document of their chain,
//! and the places of its validators. And what the programs that run them speak.
//!
//! Neither contains a secret. A node's key is a file of its own ([`key`](crate::runner::key)).
//!
//! Nodes in containers get these files and more ([`ContainerDevnet`]), in the form that the program
//! that runs the containers reads ([`ComposeSite`], [`ClusterSite`]).

mod authority;
mod compose;
mod containers;
mod document;
mod kubernetes;
mod manifest;
mod peers;
mod versions;

pub use authority::AuthorityError;
pub use compose::{COMPOSE_FILE, ComposeSite};
pub use containers::{
    API_PORT, ContainerDevnet, ContainerRunner, ContainerValidator, P2P_PORT, QUIC_PORT,
};
pub use document::GenesisDocument;
pub use kubernetes::{ClusterSite, ManifestError, OWNER, RunMark, Supervision};
pub use peers::{JoinedKeys, Peers, PeersError, ValidatorPlace};
pub use versions::{UnfitVersions, Versions};

use crate::topology::TopologyError;
use cowboy_host::located::Located;
use serde::de::DeserializeOwned;
use std::{fs::File, io::Read as _, path::Path};

/// The option of `node run` and `runner start` for a process that a devnet starts: it logs to its
/// folder, prints one line about itself once it runs, and ends when its standard input does.
pub const SUPERVISED: &str = "--supervised";

/// The longest file that is read, in bytes. A document with the most validators, runners and
/// accounts is shorter.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Reads a file. The name is the file's in errors.
fn load<T: DeserializeOwned>(path: &Path) -> Result<(T, String), TopologyError> {
    let file = path.display().to_string();
    let refused = |located: Located| TopologyError { file: file.clone(), located };
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| refused(error.to_string().into()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(refused(format!("longer than {MAX_FILE_BYTES} bytes").into()));
    }
    let read = serde_yaml::from_str(&text);
    let read = read.map_err(|error| refused(Located::yaml(&error, &text)))?;
    Ok((read, file))
}

#[cfg(test)]
mod fixture {
    //! The sample chain's document.

    use super::GenesisDocument;
    use crate::sample;
    use std::time::Duration;

    pub(super) fn document() -> GenesisDocument {
        let names = (0..4).map(sample::validator_name);
        let named = names.map(|name| (name.parse().unwrap(), sample::key(&name).address()));
        GenesisDocument {
            name: "shared".parse().unwrap(),
            block_time: Duration::from_millis(250),
            names: named.collect(),
            genesis: sample::genesis(4, 2),
        }
    }
}

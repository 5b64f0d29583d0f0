//! `genesis.json`: the genesis document of a chain, for nodes that have no topology.

use super::load;
use crate::{
    topology::{MAX_BLOCK_TIME_SECS, Name, Plan, TopologyError},
    types::{AddressText, Bytes, BytesText, ChainId, ChainIdText, Text},
    verification::Root,
};
use cowboy_engine::{
    chain::{Genesis, GenesisError, GenesisValidator},
    primitives::{Address, codec},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::Path, time::Duration};

/// The version of the file's format.
const FORMAT: u32 = 1;

/// A chain's genesis, and what its nodes have to agree on besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenesisDocument {
    /// The devnet's name.
    pub name: Name,
    /// The pace of blocks.
    pub block_time: Duration,
    /// The names of nodes and accounts.
    pub names: BTreeMap<Name, Address>,
    pub genesis: Genesis,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DocumentFile {
    format: u32,
    name: Name,
    /// Follows from `genesis`.
    chain_id: ChainIdText,
    block_time_ms: u64,
    names: BTreeMap<Name, AddressText>,
    /// The document in CBOR, whose hash is the chain's id.
    genesis: BytesText,
}

impl GenesisDocument {
    /// The document of a plan whose chain begins with `genesis`.
    pub fn of(plan: &Plan, genesis: Genesis) -> Self {
        let accounts = plan.accounts.iter().map(|account| &account.name);
        let validators = plan.validators.iter().map(|validator| &validator.name);
        let runners = plan.runners.iter().map(|runner| &runner.name);
        let names = accounts.chain(validators).chain(runners);
        Self {
            name: plan.name.clone(),
            block_time: plan.block_time,
            names: names.map(|name| (name.clone(), plan.key(name).address())).collect(),
            genesis,
        }
    }

    /// Reads the document, and checks that its parts belong together and can start a chain.
    pub fn load(path: &Path) -> Result<Self, TopologyError> {
        let (read, file): (DocumentFile, _) = load(path)?;
        let refused = |message: String| TopologyError { file, located: message.into() };
        let DocumentFile { format, name, chain_id, block_time_ms, names, genesis } = read;
        if format != FORMAT {
            let message = format!("format: {format}; this version of cowboyctl reads {FORMAT}");
            return Err(refused(message));
        }
        let genesis: Genesis = match codec::from_slice(&genesis.0.0) {
            Ok(genesis) => genesis,
            Err(error) => return Err(refused(format!("genesis: {error}"))),
        };
        let id = Text(ChainId(genesis.chain_id()));
        if id != chain_id {
            let message = format!("chain_id: {chain_id}, but its genesis has the chain id {id}");
            return Err(refused(message));
        }
        if let Err(error) = genesis.state() {
            return Err(refused(format!("genesis: {error}")));
        }
        let most = MAX_BLOCK_TIME_SECS * 1_000;
        if block_time_ms > most {
            let message = format!("block_time_ms: {block_time_ms}, expected at most {most}");
            return Err(refused(message));
        }
        let block_time = Duration::from_millis(block_time_ms);
        let nameless = |validator: &&GenesisValidator| {
            let address = validator.pubkey.address();
            !names.values().any(|named| **named == address)
        };
        if let Some(validator) = genesis.validators.iter().find(nameless) {
            let address = validator.pubkey.address();
            return Err(refused(format!("names: validator {address} of its genesis has none")));
        }
        let names = names.into_iter().map(|(name, address)| (name, *address)).collect();
        Ok(Self { name, block_time, names, genesis })
    }

    /// The document as the contents of a file.
    pub fn to_json(&self) -> String {
        let names = self.names.iter().map(|(name, address)| (name.clone(), (*address).into()));
        let file = DocumentFile {
            format: FORMAT,
            name: self.name.clone(),
            chain_id: Text(ChainId(self.genesis.chain_id())),
            block_time_ms: u64::try_from(self.block_time.as_millis()).unwrap_or(u64::MAX),
            names: names.collect(),
            genesis: Text(Bytes(codec::to_vec(&self.genesis))),
        };
        let json = serde_json::to_string_pretty(&file).expect("a document is plain data");
        format!("{json}\n")
    }

    /// The document as what a verification trusts. `source` names the file.
    pub fn root(&self, source: String) -> Result<Root, GenesisError> {
        let names = self.names.iter().map(|(name, address)| (name.to_string(), *address));
        Root::new(self.genesis.clone(), names.collect(), source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handout::fixture::document;
    use std::fs;

    #[test]
    fn a_document_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genesis.json");
        let document = document();
        fs::write(&path, document.to_json()).unwrap();
        assert_eq!(GenesisDocument::load(&path).unwrap(), document);
        let root = document.root("a test".to_owned()).unwrap();
        assert_eq!(*root.genesis(), document.genesis);
    }

    #[test]
    fn a_document_that_fits_no_chain_is_refused_with_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genesis.json");
        let document = document();
        let text = document.to_json();
        let refused = |text: &str, says: &str| {
            fs::write(&path, text).unwrap();
            let error = GenesisDocument::load(&path).unwrap_err().to_string();
            assert!(error.contains("genesis.json") && error.contains(says), "{error}");
        };
        refused("", "");
        refused("{}", "missing field");
        refused(&text.replace("\"format\": 1", "\"format\": 2"), "format: 2; this version");
        let mut other = document.clone();
        other.genesis.name.push('x');
        let id = Text(ChainId(document.genesis.chain_id())).to_string();
        let of_other = Text(ChainId(other.genesis.chain_id())).to_string();
        refused(&text.replace(&id, &of_other), "but its genesis has the chain id");
        refused(&text.replace("\"genesis\": \"0x", "\"genesis\": \"0xff"), "genesis: ");
        refused(&text.replace("\"name\"", "\"nam\""), "nam");
        refused(
            &text.replace("\"block_time_ms\": 250", "\"block_time_ms\": 60001"),
            "at most 60000",
        );
        let nameless = GenesisDocument { names: BTreeMap::new(), ..document.clone() };
        refused(&nameless.to_json(), "of its genesis has none");
        other.genesis.validators.clear();
        refused(&other.to_json(), "genesis: a chain needs a validator");
        fs::write(&path, vec![b' '; 9 << 20]).unwrap();
        let error = GenesisDocument::load(&path).unwrap_err().to_string();
        assert!(error.contains("longer than"), "{error}");
    }
}

//! `validators.json` in a runner's folder: the validators it trusted last.

use super::{Height, Trust};
use crate::{
    home::HomeError,
    types::{Bytes, BytesText, ChainId, ChainIdText, HashText, Text},
};
use cowboy_host::files::{self, FileError};
use serde::{Deserialize, Serialize};
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::runner) struct Remembered {
    pub chain_id: ChainIdText,
    /// Tells chains with the same id apart.
    pub first_block: HashText,
    /// The consensus keys of the trust root; `None`: the validators that the API named first.
    root: Option<Vec<BytesText>>,
    /// The block whose state has the validators.
    height: u64,
    validators: Vec<BytesText>,
}

impl Remembered {
    pub fn of(trust: &Trust, root: Option<&[[u8; 32]]>, first_block: HashText) -> Self {
        let (validators, height) = trust.voters();
        Self {
            chain_id: Text(ChainId(trust.chain_id())),
            first_block,
            root: root.map(texts),
            height: height.get(),
            validators: texts(validators),
        }
    }

    pub fn rests_on(&self, root: &[[u8; 32]]) -> bool {
        self.root.as_deref() == Some(&texts(root))
    }

    /// Whether `other` differs in nothing but the block.
    pub fn has_the_validators_of(&self, other: &Self) -> bool {
        let Self { chain_id, first_block, root, height: _, validators } = self;
        (chain_id, first_block) == (&other.chain_id, &other.first_block)
            && (root, validators) == (&other.root, &other.validators)
    }

    /// Reads the file; `None` when it does not exist.
    pub fn load(path: &Path) -> Result<Option<(Self, Trust)>, HomeError> {
        let Some(text) = files::read_if_there(path)? else { return Ok(None) };
        let malformed = |reason: String| FileError::Malformed { path: path.to_owned(), reason };
        let kept: Self = serde_json::from_str(&text).map_err(|e| malformed(e.to_string()))?;
        let key = |key: &BytesText| {
            let expected = || malformed(format!("{key} is not a consensus key"));
            <[u8; 32]>::try_from(key.0.0.as_slice()).map_err(|_| expected())
        };
        let voters = kept.validators.iter().map(key).collect::<Result<Vec<_>, _>>()?;
        if voters.is_empty() {
            return Err(malformed("it names no validator".to_owned()).into());
        }
        let trust = Trust::new(kept.chain_id.0.0, voters, Height::new(kept.height));
        Ok(Some((kept, trust)))
    }

    pub fn save(&self, path: &Path) -> Result<(), HomeError> {
        let json = serde_json::to_string_pretty(self).expect("a record is plain data");
        Ok(files::write_private(path, &format!("{json}\n"))?)
    }
}

fn texts(keys: &[[u8; 32]]) -> Vec<BytesText> {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.iter().map(|key| Text(Bytes(key.to_vec()))).collect()
}

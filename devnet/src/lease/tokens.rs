//! Ids and tokens: made from the system's randomness, and known again by their hashes.

use crate::api::same_hash;
use cowboy_engine::{
    lease::RunnerId,
    primitives::{Hash, keccak256},
};
use rand::{
    TryRng as _,
    rngs::{SysError, SysRng},
};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{PoisonError, RwLock},
};

/// Keeps hashes of tokens apart from whatever else is hashed.
const DOMAIN: &[u8] = b"cowboy/lease/runner-token/v1";

/// The system has no randomness to give.
#[derive(Debug, thiserror::Error)]
#[error("no randomness from the system: {0}")]
pub struct NoRandomness(#[from] SysError);

/// A name for something new: 64 random bits.
pub(super) fn new_id(prefix: &str) -> Result<String, NoRandomness> {
    random::<8>(prefix)
}

/// What nobody can guess: 256 random bits.
pub(super) fn new_secret(prefix: &str) -> Result<String, NoRandomness> {
    random::<32>(prefix)
}

fn random<const N: usize>(prefix: &str) -> Result<String, NoRandomness> {
    let mut bytes = [0; N];
    SysRng.try_fill_bytes(&mut bytes)?;
    Ok(format!("{prefix}_{}", hex::encode(bytes)))
}

/// What is kept of a token.
pub(super) fn token_hash(token: &[u8]) -> Hash {
    keccak256(&[DOMAIN, token])
}

/// The tokens of all runners, by their hashes.
#[derive(Default)]
pub(super) struct Tokens(RwLock<Known>);

#[derive(Default)]
struct Known {
    runners: BTreeMap<Hash, RunnerId>,
    hashes: BTreeMap<RunnerId, Hash>,
}

impl Tokens {
    /// Whose token this is.
    pub fn holder(&self, token: &[u8]) -> Option<RunnerId> {
        let hash = token_hash(token);
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (found, runner) = known.runners.get_key_value(&hash)?;
        same_hash(found, &hash).then(|| runner.clone())
    }

    /// How many runners have one.
    pub fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).hashes.len()
    }

    /// A runner has this token from now on, and no other; or none.
    pub fn set(&self, runner: RunnerId, hash: Option<Hash>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = match hash {
            Some(hash) => known.hashes.insert(runner.clone(), hash),
            None => known.hashes.remove(&runner),
        };
        if let Some(before) = before {
            known.runners.remove(&before);
        }
        if let Some(hash) = hash {
            known.runners.insert(hash, runner);
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_has_one_token_and_only_its_hash_is_known() {
        let tokens = Tokens::default();
        let (a, b) = (new_secret("t").unwrap(), new_secret("t").unwrap());
        assert_ne!(a, b);
        assert_eq!((a.len(), new_id("run").unwrap().len()), (2 + 64, 4 + 16));
        let runner = RunnerId::from("r");
        tokens.set(runner.clone(), Some(token_hash(a.as_bytes())));
        assert_eq!(tokens.holder(a.as_bytes()), Some(runner.clone()));
        assert_eq!(tokens.holder(b.as_bytes()), None);
        tokens.set(runner.clone(), Some(token_hash(b.as_bytes())));
        assert_eq!(tokens.holder(a.as_bytes()), None, "replaced");
        assert_eq!(tokens.holder(b.as_bytes()), Some(runner.clone()));
        assert_eq!((tokens.len(), format!("{tokens:?}")), (1, "1 tokens".to_owned()));
        tokens.set(runner, None);
        assert_eq!(tokens.holder(b.as_bytes()), None, "revoked");
        assert_eq!(tokens.len(), 0);
    }
}

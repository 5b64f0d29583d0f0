//! Ids and tokens: generated from the system's randomness; tokens are recognized by their hashes.

use crate::machine::RunnerId;
use cowboy_engine::primitives::{Hash, keccak256};
use cowboy_host::http::bearer::same_hash;
use rand::{
    TryRng as _,
    rngs::{SysError, SysRng},
};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicU64, Ordering},
    },
};

const DOMAIN: &[u8] = b"cowboy/lease/runner-token/v1";

/// The system's source of randomness failed.
#[derive(Debug, thiserror::Error)]
#[error("no randomness from the system: {0}")]
pub struct NoRandomness(#[from] SysError);

/// A new id with 64 random bits.
pub(super) fn new_id(prefix: &str) -> Result<String, NoRandomness> {
    random::<8>(prefix)
}

/// A new secret with 256 random bits.
pub(super) fn new_secret(prefix: &str) -> Result<String, NoRandomness> {
    random::<32>(prefix)
}

fn random<const N: usize>(prefix: &str) -> Result<String, NoRandomness> {
    let mut bytes = [0; N];
    SysRng.try_fill_bytes(&mut bytes)?;
    Ok(format!("{prefix}_{}", hex::encode(bytes)))
}

pub(super) fn token_hash(token: &[u8]) -> Hash {
    keccak256(&[DOMAIN, token])
}

/// The public id of a token: 64 bits of its hash.
pub(super) fn token_id(hash: &Hash) -> String {
    hex::encode(&hash.0[..8])
}

#[derive(Default)]
pub(super) struct Tokens(RwLock<KnownToken>);

#[derive(Default)]
struct KnownToken {
    /// The runner of each token, and when the token was last used, in the server's milliseconds; 0
    /// for never.
    runners: BTreeMap<Hash, (RunnerId, AtomicU64)>,
    hashes: BTreeMap<RunnerId, Hash>,
}

impl Tokens {
    fn read(&self) -> RwLockReadGuard<'_, KnownToken> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the token was used at `now`.
    pub fn holder(&self, token: &[u8], now: u64) -> Option<RunnerId> {
        let hash = token_hash(token);
        let known = self.read();
        let (found, (runner, seen)) = known.runners.get_key_value(&hash)?;
        if !same_hash(&found.0, &hash.0) {
            return None;
        }
        seen.fetch_max(now, Ordering::Relaxed);
        Some(runner.clone())
    }

    /// In milliseconds.
    pub fn seen(&self, runner: &RunnerId) -> Option<u64> {
        let known = self.read();
        let (_, seen) = known.runners.get(known.hashes.get(runner)?)?;
        Some(seen.load(Ordering::Relaxed)).filter(|seen| *seen > 0)
    }

    pub fn len(&self) -> usize {
        self.read().hashes.len()
    }

    /// Replaces a runner's token, with `seen` as its last use, or removes it.
    pub fn set(&self, runner: RunnerId, hash: Option<Hash>, seen: u64) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = match hash {
            Some(hash) => known.hashes.insert(runner.clone(), hash),
            None => known.hashes.remove(&runner),
        };
        if let Some(before) = before {
            known.runners.remove(&before);
        }
        if let Some(hash) = hash {
            known.runners.insert(hash, (runner, AtomicU64::new(seen)));
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
        let hash = |token: &str| Some(token_hash(token.as_bytes()));
        tokens.set(runner.clone(), hash(&a), 0);
        assert_eq!(tokens.seen(&runner), None);
        assert_eq!(tokens.holder(a.as_bytes(), 5), Some(runner.clone()));
        assert_eq!(tokens.holder(b.as_bytes(), 6), None);
        assert_eq!(tokens.seen(&runner), Some(5));
        tokens.set(runner.clone(), hash(&b), 0);
        assert_eq!(tokens.holder(a.as_bytes(), 7), None, "replaced");
        assert_eq!(tokens.seen(&runner), None);
        assert_eq!(tokens.holder(b.as_bytes(), 8), Some(runner.clone()));
        assert_eq!((tokens.len(), format!("{tokens:?}")), (1, "1 tokens".to_owned()));
        tokens.set(runner.clone(), None, 0);
        assert_eq!(tokens.holder(b.as_bytes(), 9), None, "revoked");
        assert_eq!((tokens.len(), tokens.seen(&runner)), (0, None));
    }
}

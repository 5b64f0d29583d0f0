//! The signers of the newest signatures that this process has checked.
//!
//! A commitment, for example, is checked when its runner hands it in, before its transaction is
//! submitted, by the proposer and by every validator that executes the block. An entry is found by
//! the whole digest and the whole signature, so what is remembered is what a recovery would give,
//! and a process decides the same with one validator as with all of them.

use super::{PublicKey, Signature};
use crate::primitives::Hash;
use std::{
    collections::BTreeMap,
    mem,
    sync::{Mutex, PoisonError},
};

/// At least this number of signatures is remembered and at most twice this number, in 2 MB.
const GENERATION: usize = 4_096;

static SIGNERS: Mutex<Signers> = Mutex::new(Signers::NONE);

struct Signers {
    young: BTreeMap<CheckedSignature, PublicKey>,
    old: BTreeMap<CheckedSignature, PublicKey>,
}

type CheckedSignature = (Hash, [u8; 65]);

impl Signers {
    const NONE: Self = Self { young: BTreeMap::new(), old: BTreeMap::new() };

    fn get(&self, checked: &CheckedSignature) -> Option<PublicKey> {
        self.young.get(checked).or_else(|| self.old.get(checked)).cloned()
    }

    fn insert(&mut self, checked: CheckedSignature, signer: PublicKey) {
        if self.young.len() >= GENERATION {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(checked, signer);
    }
}

pub(super) fn signer(digest: &Hash, signature: &Signature) -> Option<PublicKey> {
    let checked = (*digest, signature.0);
    // No code panics while it holds the lock, and the maps would be whole if it did.
    let known = SIGNERS.lock().unwrap_or_else(PoisonError::into_inner).get(&checked);
    known.or_else(|| {
        let signer = signature.recover(digest)?;
        let mut signers = SIGNERS.lock().unwrap_or_else(PoisonError::into_inner);
        signers.insert(checked, signer.clone());
        Some(signer)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::{SecretKey, keccak256};

    #[test]
    fn the_oldest_are_forgotten() {
        let key = SecretKey::derive(b"seed", "recovered").public_key();
        let checked = |i: usize| (keccak256(&[&i.to_be_bytes()]), [0; 65]);
        let mut signers = Signers::NONE;
        for i in 0..3 * GENERATION {
            signers.insert(checked(i), key.clone());
            assert!(signers.young.len() + signers.old.len() <= 2 * GENERATION);
        }
        assert_eq!(signers.get(&checked(0)), None);
        for i in 2 * GENERATION..3 * GENERATION {
            assert_eq!(signers.get(&checked(i)), Some(key.clone()));
        }
    }
}

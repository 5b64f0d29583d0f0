//! The validators that a runner in a process of its own trusts, and the basis of that trust.
//!
//! A runner starts a job when enough validators assign it alike, so it has to know the validators;
//! the API that it asks may lie. It begins with validators that it trusts ([`TrustRoot`]) and
//! accepts others only from proofs of a state ([`Subject::Validators`]).
//!
//! When a proof arrives:
//! 1. The proof must hold, and a quorum of the committee of its header's epoch must have signed its
//!    certificate: the committee that an earlier proof showed, or the committee that the proof
//!    itself shows.
//! 2. If only the proof itself shows that committee, more validators of the newest known committee
//!    must have signed than may be dishonest. One of them is honest, and an honest validator signs
//!    no header whose state root differs from its own.
//! 3. A proof of a state older than the newest believed one changes nothing.
//!
//! So the runner can follow a committee of which less than a third changes per epoch, and any other
//! committee if it saw the next committee in the epoch before. This assumes that fewer than a third
//! of each committee that it knows lie, even after they have left, and fewer than two thirds of a
//! committee that was about to serve.

mod remembered;

pub(super) use remembered::Remembered;

use super::KnownValidators;
use crate::{
    consensus::{
        certificate::{self, CertificateError},
        scheme::{Committee, CommitteeError},
    },
    verification,
};
use cowboy_engine::{
    chain::{
        Certificate, Found, GenesisValidator, MAX_VALIDATORS, ProvedStatement, Roster, StateProof,
        StateProofError, Subject,
    },
    presence::canonical,
    primitives::Height,
};
use std::{fmt, sync::Arc};

/// What a runner trusts before it has asked anything.
#[derive(Debug)]
pub enum TrustRoot {
    Genesis(Box<verification::Root>),
    /// The validators with these consensus keys, which served in some one epoch of this chain.
    Validators {
        chain_id: u64,
        keys: Vec<[u8; 32]>,
    },
    /// The validators that the API names first, permanently.
    FirstUse,
}

impl TrustRoot {
    /// The trusted chain id and validators; `None`: the first that the API names.
    pub(super) fn validators(&self) -> Option<(u64, Vec<[u8; 32]>)> {
        match self {
            Self::Genesis(root) => {
                let genesis = root.genesis();
                Some((genesis.chain_id(), keys(&genesis.validators)))
            }
            Self::Validators { chain_id, keys } => Some((*chain_id, keys.clone())),
            Self::FirstUse => None,
        }
    }
}

/// Names the basis of the trust, for logs.
impl fmt::Display for TrustRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Genesis(_) => f.write_str("the chain's genesis"),
            Self::Validators { .. } => f.write_str("the validators that were named"),
            Self::FirstUse => f.write_str("the validators that the API named first"),
        }
    }
}

/// Why a proof does not show who validates.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error(transparent)]
    State(#[from] StateProofError),
    #[error("it is about {0}, not about validators")]
    Subject(Subject),
    #[error("its header is of epoch {header}, its state of epoch {state}")]
    Epoch { header: u64, state: u64 },
    /// More validators than a committee may have, whose votes would take long to verify.
    #[error("it has a committee of {0} validators, there are {MAX_VALIDATORS} at most")]
    TooMany(usize),
    #[error(transparent)]
    Committee(#[from] CommitteeError),
    #[error("certificate: {0}")]
    Certificate(#[from] CertificateError),
    #[error(
        "of the {known} validators known since block {since}, {signed} have signed the state of \
         block {height}, where {needed} would vouch for it"
    )]
    Strangers {
        known: usize,
        since: Height,
        signed: usize,
        height: Height,
        /// Number of members that must sign: one more than may be dishonest.
        needed: usize,
    },
    #[error(
        "it is of the state after block {got}; the runner knows other validators, of block {since}"
    )]
    Old { got: Height, since: Height },
}

#[derive(Debug, Clone)]
pub(super) struct Trust {
    chain_id: u64,
    /// The ed25519 keys of the newest known committee, ascending.
    voters: Vec<[u8; 32]>,
    /// The block that produced the newest believed state.
    height: Height,
    /// The roster of that state; `None`: only the voters are known.
    roster: Option<Roster>,
}

impl Trust {
    /// Trusts these validators, which vote in the epoch of the block at `height`.
    pub fn new(chain_id: u64, mut voters: Vec<[u8; 32]>, height: Height) -> Self {
        voters.sort_unstable();
        voters.dedup();
        Self { chain_id, voters, height, roster: None }
    }

    pub fn on_first_use(chain_id: u64, bytes: &[u8]) -> Result<Self, TrustError> {
        let read = ReadProof::new(bytes)?;
        let trust = Self::new(chain_id, keys(read.committee()?), Height::GENESIS);
        read.signed_by(chain_id, read.committee()?)?;
        Ok(Self { height: read.height, roster: Some(read.roster), ..trust })
    }

    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// The ed25519 keys of the newest known committee, ascending, and the block whose state has it.
    pub fn voters(&self) -> (&[[u8; 32]], Height) {
        (&self.voters, self.height)
    }

    pub const fn roster(&self) -> Option<&Roster> {
        self.roster.as_ref()
    }

    /// Learns from a proof if it is valid. A proof of an earlier state is accepted when it has the
    /// known committee. It then changes nothing unless only the voters are known.
    pub fn believe(&mut self, bytes: &[u8]) -> Result<(), TrustError> {
        let read = ReadProof::new(bytes)?;
        let same = sorted(keys(&read.roster.committee)) == self.voters;
        let (got, since) = (read.height, self.height);
        if got < since && !same {
            return Err(TrustError::Old { got, since });
        }
        if !self.shown_before(&read)? {
            self.vouched_for(&read)?;
        }
        if got >= since || self.roster.is_none() {
            self.take(got.max(since), read.roster);
        }
        Ok(())
    }

    pub fn take(&mut self, height: Height, roster: Roster) {
        self.voters = sorted(keys(&roster.committee));
        self.height = height;
        self.roster = Some(roster);
    }

    /// Whether the committee that an earlier proof showed for the epoch has signed.
    fn shown_before(&self, read: &ReadProof) -> Result<bool, TrustError> {
        let Some(known) = &self.roster else { return Ok(false) };
        let committee = known.committee_of(read.epoch());
        Ok(committee.is_some_and(|committee| read.signed_by(self.chain_id, committee).is_ok()))
    }

    /// Fails unless the committee that the proof shows has signed, with enough known validators
    /// among it.
    fn vouched_for(&self, read: &ReadProof) -> Result<(), TrustError> {
        let committee = read.signed_by(self.chain_id, read.committee()?)?;
        let is_known = |key: &[u8]| self.voters.iter().any(|voter| voter.as_slice() == key);
        let signers =
            read.certificate.votes.iter().filter_map(|vote| committee.key(vote.validator));
        let signed = signers.filter(|key| is_known(key.as_ref())).count();
        let (known, since) = (self.voters.len(), self.height);
        let needed = canonical::of(u32::try_from(known).unwrap_or(u32::MAX)) as usize;
        if signed < needed {
            let height = read.height;
            return Err(TrustError::Strangers { known, since, signed, height, needed });
        }
        Ok(())
    }

    pub fn tell(&self, known: &mut KnownValidators) {
        let Some(roster) = &self.roster else { return };
        known.learn(roster.epoch, keys(&roster.committee));
        known.learn(roster.epoch.saturating_add(1), keys(&roster.next));
        // The chain may be in either epoch.
        let validators = u32::try_from(roster.committee.len()).unwrap_or(u32::MAX);
        known.validators = known.validators.max(validators);
    }
}

/// A proof about validators that is valid apart from its signatures.
struct ReadProof {
    certificate: Certificate,
    height: Height,
    roster: Roster,
}

impl ReadProof {
    fn new(bytes: &[u8]) -> Result<Self, TrustError> {
        let proof = StateProof::from_bytes(bytes)?;
        let ProvedStatement { height, found, .. } = proof.check()?;
        match found {
            Found::Validators(roster) => {
                Ok(Self { certificate: proof.certificate, height, roster })
            }
            _ => Err(TrustError::Subject(proof.subject)),
        }
    }

    const fn epoch(&self) -> u64 {
        self.certificate.round.epoch
    }

    /// The committee that signs the header, if the state is of the same epoch.
    fn committee(&self) -> Result<&Arc<Vec<GenesisValidator>>, TrustError> {
        let (header, state) = (self.epoch(), self.roster.epoch);
        self.roster.committee_of(header).ok_or(TrustError::Epoch { header, state })
    }

    /// Fails unless a quorum of `committee` has signed.
    fn signed_by(
        &self,
        chain_id: u64,
        committee: &[GenesisValidator],
    ) -> Result<Committee, TrustError> {
        if committee.len() > MAX_VALIDATORS {
            return Err(TrustError::TooMany(committee.len()));
        }
        let committee = Committee::of_keys(chain_id, &keys(committee))?;
        certificate::verify(&committee, &self.certificate)?;
        Ok(committee)
    }
}

fn keys(validators: &[GenesisValidator]) -> Vec<[u8; 32]> {
    validators.iter().map(|validator| validator.consensus_key).collect()
}

fn sorted(mut keys: Vec<[u8; 32]>) -> Vec<[u8; 32]> {
    keys.sort_unstable();
    keys
}

#[cfg(test)]
mod tests;

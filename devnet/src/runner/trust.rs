//! Whom a runner in a process of its own believes, and what that rests on.
//!
//! A runner starts a job when enough validators assign it alike, so it has to know who they are;
//! the API that it asks may lie. It begins with validators that it trusts ([`TrustRoot`]) and takes
//! others only from proofs of a state ([`Subject::Validators`]).
//!
//! Upon a proof:
//! 1. It has to hold, and its certificate has to have a quorum of the committee of its header's
//!    epoch: that which an earlier proof has shown, or the one that the proof shows itself.
//! 2. Where only the proof itself shows that committee, more validators of the newest committee
//!    that is known have to have signed than may be dishonest. One of them is honest, and an honest
//!    validator signs no header whose state root differs from its own.
//! 3. One of an earlier state than the newest that was believed changes nothing.
//!
//! So the runner follows a committee of which less than a third changes in an epoch, and any other
//! where it has seen in the epoch before what the next committee will be. What that rests on: fewer
//! than a third of each committee that it knows lie, also after they have left, and fewer than two
//! thirds of one that was about to serve.

mod remembered;

pub(super) use remembered::Remembered;

use super::Known;
use crate::{
    consensus::{
        certificate::{self, CertificateError},
        scheme::{Committee, CommitteeError},
    },
    verification,
};
use cowboy_engine::{
    chain::{
        Certificate, Found, MAX_VALIDATORS, Roster, StateProof, StateProofError, Statement,
        Subject, Validator,
    },
    presence::threshold,
    primitives::Height,
};
use std::{fmt, sync::Arc};

/// What a runner trusts before it has asked anything.
#[derive(Debug)]
pub enum TrustRoot {
    /// The document that the chain starts from.
    Genesis(Box<verification::Root>),
    /// The validators with these consensus keys, those of any one epoch of this chain.
    Validators {
        /// The chain.
        chain_id: u64,
        /// Their ed25519 keys.
        keys: Vec<[u8; 32]>,
    },
    /// Those that the API names first, for good.
    FirstUse,
}

impl TrustRoot {
    /// The chain and the validators that are trusted; `None`: those that come first.
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

/// What it rests on.
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
    /// Not a proof, or one that contradicts itself.
    #[error(transparent)]
    State(#[from] StateProofError),
    /// It is about something else.
    #[error("it is about {0}, not about validators")]
    Subject(Subject),
    /// The state says nothing of who signs the header.
    #[error("its header is of epoch {header}, its state of epoch {state}")]
    Epoch {
        /// The header's consensus epoch.
        header: u64,
        /// The state's.
        state: u64,
    },
    /// More than a committee has: their votes would take long to verify.
    #[error("it has a committee of {0} validators, there are {MAX_VALIDATORS} at most")]
    TooMany(usize),
    /// Keys that are no committee.
    #[error(transparent)]
    Committee(#[from] CommitteeError),
    /// Too few votes that hold.
    #[error("certificate: {0}")]
    Certificate(#[from] CertificateError),
    /// A committee that no known one vouches for.
    #[error(
        "of the {known} validators known since block {since}, {signed} have signed the state of \
         block {height}, where {needed} would vouch for it"
    )]
    Strangers {
        /// How many are known.
        known: usize,
        /// The block after whose state they are.
        since: Height,
        /// Those among them that signed.
        signed: usize,
        /// The block that left the proof's state.
        height: Height,
        /// How many have to sign: one more than may be dishonest.
        needed: usize,
    },
    /// A committee of before the newest one that is known.
    #[error(
        "it is of the state after block {got}; the runner knows other validators, of block {since}"
    )]
    Old {
        /// The block that left the proof's state.
        got: Height,
        /// The block after whose state others are known.
        since: Height,
    },
}

/// The validators that are believed.
#[derive(Debug, Clone)]
pub(super) struct Trust {
    chain_id: u64,
    /// The ed25519 keys of the newest committee that is known, ascending.
    voters: Vec<[u8; 32]>,
    /// The block that left the newest state that is believed.
    height: Height,
    /// What that state has; `None`: only the voters are known.
    roster: Option<Roster>,
}

impl Trust {
    /// These validators are trusted: they vote in the epoch of the block at `height`.
    pub fn new(chain_id: u64, mut voters: Vec<[u8; 32]>, height: Height) -> Self {
        voters.sort_unstable();
        voters.dedup();
        Self { chain_id, voters, height, roster: None }
    }

    /// Trusts those that a proof names.
    pub fn on_first_use(chain_id: u64, bytes: &[u8]) -> Result<Self, TrustError> {
        let read = Read::new(bytes)?;
        let trust = Self::new(chain_id, keys(read.committee()?), Height::GENESIS);
        read.signed_by(chain_id, read.committee()?)?;
        Ok(Self { height: read.height, roster: Some(read.roster), ..trust })
    }

    /// The chain.
    pub const fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// The ed25519 keys of the newest committee that is known, ascending, and the block of whose
    /// state it is.
    pub fn voters(&self) -> (&[[u8; 32]], Height) {
        (&self.voters, self.height)
    }

    /// Who validates, where a proof has shown it.
    pub const fn roster(&self) -> Option<&Roster> {
        self.roster.as_ref()
    }

    /// Learns from a proof, if it is believed. One of an earlier state is believed where it has the
    /// committee that is known, and then changes nothing, unless nothing else is known.
    pub fn believe(&mut self, bytes: &[u8]) -> Result<(), TrustError> {
        let read = Read::new(bytes)?;
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

    /// Believes what the state after the block at `height` has.
    pub fn take(&mut self, height: Height, roster: Roster) {
        self.voters = sorted(keys(&roster.committee));
        self.height = height;
        self.roster = Some(roster);
    }

    /// Whether a committee that an earlier proof has shown for the epoch has signed.
    fn shown_before(&self, read: &Read) -> Result<bool, TrustError> {
        let Some(known) = &self.roster else { return Ok(false) };
        let committee = known.committee_of(read.epoch());
        Ok(committee.is_some_and(|committee| read.signed_by(self.chain_id, committee).is_ok()))
    }

    /// Whether the committee that the proof shows has signed, with enough of those that are known.
    fn vouched_for(&self, read: &Read) -> Result<(), TrustError> {
        let committee = read.signed_by(self.chain_id, read.committee()?)?;
        let is_known = |key: &[u8]| self.voters.iter().any(|voter| voter.as_slice() == key);
        let signers =
            read.certificate.votes.iter().filter_map(|vote| committee.key(vote.validator));
        let signed = signers.filter(|key| is_known(key.as_ref())).count();
        let (known, since) = (self.voters.len(), self.height);
        let needed = threshold::of(u32::try_from(known).unwrap_or(u32::MAX)) as usize;
        if signed < needed {
            let height = read.height;
            return Err(TrustError::Strangers { known, since, signed, height, needed });
        }
        Ok(())
    }

    /// Tells what is believed of the committees.
    pub fn tell(&self, known: &mut Known) {
        let Some(roster) = &self.roster else { return };
        known.learn(roster.epoch, keys(&roster.committee));
        known.learn(roster.epoch.saturating_add(1), keys(&roster.next));
        // The chain may be in either epoch.
        let validators = u32::try_from(roster.committee.len()).unwrap_or(u32::MAX);
        known.validators = known.validators.max(validators);
    }
}

/// A proof about validators that holds, but for its signatures.
struct Read {
    certificate: Certificate,
    height: Height,
    roster: Roster,
}

impl Read {
    fn new(bytes: &[u8]) -> Result<Self, TrustError> {
        let proof = StateProof::from_bytes(bytes)?;
        let Statement { height, found, .. } = proof.check()?;
        match found {
            Found::Validators(roster) => {
                Ok(Self { certificate: proof.certificate, height, roster })
            }
            _ => Err(TrustError::Subject(proof.subject)),
        }
    }

    /// The consensus epoch of the header.
    const fn epoch(&self) -> u64 {
        self.certificate.round.epoch
    }

    /// Who signs the header, as far as the state says.
    fn committee(&self) -> Result<&Arc<Vec<Validator>>, TrustError> {
        let (header, state) = (self.epoch(), self.roster.epoch);
        self.roster.committee_of(header).ok_or(TrustError::Epoch { header, state })
    }

    /// Whether a quorum of `committee` has signed.
    fn signed_by(&self, chain_id: u64, committee: &[Validator]) -> Result<Committee, TrustError> {
        if committee.len() > MAX_VALIDATORS {
            return Err(TrustError::TooMany(committee.len()));
        }
        let committee = Committee::of_keys(chain_id, &keys(committee))?;
        certificate::verify(&committee, &self.certificate)?;
        Ok(committee)
    }
}

fn keys(validators: &[Validator]) -> Vec<[u8; 32]> {
    validators.iter().map(|validator| validator.consensus_key).collect()
}

fn sorted(mut keys: Vec<[u8; 32]>) -> Vec<[u8; 32]> {
    keys.sort_unstable();
    keys
}

#[cfg(test)]
mod tests;

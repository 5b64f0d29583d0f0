//! Converts between the consensus library's finalizations and the chain's certificates, and
//! verifies certificates.

use super::{Digest, Finalization, scheme::Committee, vote::Votes};
use commonware_consensus::{
    simplex::types::{Proposal, Subject},
    types::{Epoch, Round, View},
};
use cowboy_engine::{
    chain::{self, Certificate},
    primitives::Hash,
};

/// Why a certificate does not prove its block final.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Too few or too many votes: a certificate holds exactly a quorum.
    #[error("{got} votes where {expected} make a quorum")]
    Votes { got: usize, expected: usize },
    #[error("a vote by validator {validator} of a committee of {validators}")]
    UnknownValidator { validator: u32, validators: usize },
    #[error("the vote of validator {validator} follows that of validator {after}")]
    Order { validator: u32, after: u32 },
    #[error("the vote of validator {validator} (0x{}) is not signed by it", hex::encode(key))]
    Signature {
        validator: u32,
        /// The validator's ed25519 key.
        key: [u8; 32],
    },
}

/// The hash of a block as the consensus library's digest.
pub const fn digest(hash: Hash) -> Digest {
    commonware_cryptography::sha256::Digest(hash.0)
}

/// A digest of the consensus library as the hash of a block.
pub const fn hash(digest: Digest) -> Hash {
    Hash(digest.0)
}

/// The chain's form of a finalization.
pub fn from_finalization(finalization: &Finalization) -> Certificate {
    let Proposal { round, parent, payload } = &finalization.proposal;
    Certificate {
        block: hash(*payload),
        round: chain::Round {
            epoch: round.epoch().get(),
            view: round.view().get(),
            parent_view: parent.get(),
        },
        votes: finalization.certificate.0.clone(),
    }
}

/// The consensus library's form of a certificate.
pub fn to_finalization(certificate: &Certificate) -> Finalization {
    Finalization { proposal: proposal(certificate), certificate: Votes(certificate.votes.clone()) }
}

/// Verifies every vote of `certificate` against `committee`. The error names the first validator
/// whose vote is invalid.
pub fn verify(committee: &Committee, certificate: &Certificate) -> Result<(), CertificateError> {
    faults(committee, certificate).next().map_or(Ok(()), Err)
}

/// All errors of `certificate`, found lazily; empty if it proves its block final.
pub fn faults<'a>(
    committee: &'a Committee,
    certificate: &'a Certificate,
) -> impl Iterator<Item = CertificateError> + 'a {
    let validators = committee.validators().len();
    let proposal = proposal(certificate);
    let mut after = None;
    let votes = certificate.votes.iter().filter_map(move |vote| {
        let validator = vote.validator;
        let Some(key) = committee.key(validator) else {
            return Some(CertificateError::UnknownValidator { validator, validators });
        };
        if let Some(after) = after.replace(validator)
            && after >= validator
        {
            return Some(CertificateError::Order { validator, after });
        }
        let subject = Subject::Finalize { proposal: &proposal };
        if committee.verify_vote(&subject, vote) {
            return None;
        }
        let key = key.as_ref().try_into().expect("an ed25519 public key has 32 bytes");
        Some(CertificateError::Signature { validator, key })
    });
    let (got, expected) = (certificate.votes.len(), committee.quorum());
    let quorum = (got != expected).then_some(CertificateError::Votes { got, expected });
    votes.chain(quorum)
}

fn proposal(certificate: &Certificate) -> Proposal<Digest> {
    let chain::Round { epoch, view, parent_view } = certificate.round;
    Proposal::new(
        Round::new(Epoch::new(epoch), View::new(view)),
        View::new(parent_view),
        digest(certificate.block),
    )
}

//! Blocks, the certificates they carry, and the rule for which certificates a block may carry (spec
//! chain.md, "Certificates in blocks").
//!
//! The candidates of a block are its parent's open ancestors and the parent itself. Each embedded
//! certificate names a candidate, in ascending height; candidates without a certificate form the
//! block's own `open` list. All of this follows from the parent's header alone.

use super::transaction::{self, KnownTransactions, NoneKnown, SignedTransaction};
use crate::{
    presence::Bitmap,
    primitives::{
        Hash, Height,
        codec::{Decode, DecodeError, Encode, Reader, Writer, to_vec},
        keccak256,
    },
    record,
};

/// Maximum number of uncertified ancestors that a chain remembers for late inclusion.
pub const MAX_OPEN: usize = 8;

/// The consensus round in which a block was proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Round {
    /// The consensus epoch, which numbers the committee.
    pub epoch: u64,
    pub view: u64,
    pub parent_view: u64,
}
record!(Round { epoch, view, parent_view });

/// A block and the state root after its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    pub height: Height,
    /// [`State::root`](super::State::root) after the block.
    pub state_root: Hash,
}
record!(Executed { height, state_root });

/// An ancestor that no block has certified yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenAncestor {
    pub height: Height,
    pub hash: Hash,
}
record!(OpenAncestor { height, hash });

record! {
    /// The part of a block that its hash covers.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Header {
        pub height: Height,
        /// The parent's hash; zero for genesis.
        pub parent: Hash,
        pub round: Round,
        /// The proposer's ed25519 key; zero for genesis.
        pub proposer: [u8; 32],
        /// Unix time in ms by the proposer's clock; greater than the parent's.
        pub timestamp_ms: u64,
        /// Number of the connectivity-subset epoch (connectivity.md §1).
        pub subset_epoch: u64,
        pub transactions_root: Hash,
        pub certificates_root: Hash,
        /// Ancestors still uncertified after this block, oldest first.
        pub open: Vec<OpenAncestor>,
        /// The newest certified ancestor and its state root.
        pub executed: Executed,
    }
}

/// One validator's finalization vote, as stored in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote {
    /// Index of the voter in its committee (validators ordered by ed25519 key).
    pub validator: u32,
    /// The runners the voter saw, by registry index at the parent of the block voted on.
    pub presence: Bitmap,
    /// ed25519 signature over subject and bitmap.
    pub signature: [u8; 64],
}
record!(Vote { validator, presence, signature });

/// A quorum of finalization votes for one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    pub block: Hash,
    /// The round of the block; the votes sign it too.
    pub round: Round,
    /// Ascending by validator.
    pub votes: Vec<Vote>,
}
record!(Certificate { block, round, votes });

impl Certificate {
    /// The certificate's contribution to the seeds of draws: keccak256("cowboy-certificate-seed/v1"
    /// ‖ block ‖ for each vote its validator (4 bytes, big-endian) ‖ its signature), ascending by
    /// validator. `embedder` is the committee index of the proposer that embeds the certificate;
    /// its vote is left out ([`SeedRule`](crate::job::SeedRule)).
    pub fn seed_digest(&self, embedder: Option<u32>) -> Hash {
        const DOMAIN: &[u8] = b"cowboy-certificate-seed/v1";
        let mut parts = DOMAIN.to_vec();
        parts.extend_from_slice(self.block.as_bytes());
        for vote in self.votes.iter().filter(|vote| Some(vote.validator) != embedder) {
            parts.extend_from_slice(&vote.validator.to_be_bytes());
            parts.extend_from_slice(&vote.signature);
        }
        keccak256(&[&parts])
    }
}

/// A block as it is sent and stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub header: Header,
    /// Certificates of ancestors, ascending by height.
    pub certificates: Vec<Certificate>,
    /// In order of execution.
    pub transactions: Vec<SignedTransaction>,
}

impl Encode for Block {
    fn encode(&self, w: &mut Writer) {
        w.record(&[
            ("header", &self.header),
            ("certificates", &self.certificates),
            ("transactions", &self.transactions),
        ]);
    }
}

impl Decode for Block {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_with(r, &NoneKnown)
    }
}

/// Why a child of a header cannot carry certificates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    #[error("certificate for {0}, which is neither the parent nor an open ancestor")]
    NoCandidate(Hash),
    #[error("certificate for {height} comes after one for the same height or higher")]
    Order { height: Height },
}

impl Header {
    pub(super) fn unrooted_genesis(timestamp_ms: u64) -> Self {
        Self {
            height: Height::GENESIS,
            parent: Hash::ZERO,
            round: Round::default(),
            proposer: [0; 32],
            timestamp_ms,
            subset_epoch: 0,
            transactions_root: transactions_root(&[]),
            certificates_root: certificates_root(&[]),
            open: Vec::new(),
            executed: Executed { height: Height::GENESIS, state_root: Hash::ZERO },
        }
    }

    pub fn hash(&self) -> Hash {
        keccak256(&[b"cowboy-block/v1", &to_vec(self)])
    }

    /// Ancestors that a child of the block with this header (and this `hash`) may certify, oldest
    /// first. Genesis needs no certificate.
    pub fn candidates(&self, hash: Hash) -> Vec<OpenAncestor> {
        let mut candidates = self.open.clone();
        if self.height > Height::GENESIS {
            candidates.push(OpenAncestor { height: self.height, hash });
        }
        candidates
    }
}

/// The heights that certificates for `blocks` certify among `candidates`, and the candidates that
/// stay open.
pub fn certify(
    candidates: &[OpenAncestor],
    blocks: impl IntoIterator<Item = Hash>,
) -> Result<(Vec<Height>, Vec<OpenAncestor>), CertificateError> {
    let mut certified: Vec<Height> = Vec::new();
    for block in blocks {
        let height = candidates
            .iter()
            .find(|open| open.hash == block)
            .map(|open| open.height)
            .ok_or(CertificateError::NoCandidate(block))?;
        if certified.last().is_some_and(|last| *last >= height) {
            return Err(CertificateError::Order { height });
        }
        certified.push(height);
    }
    let mut open: Vec<OpenAncestor> =
        candidates.iter().filter(|c| !certified.contains(&c.height)).copied().collect();
    open.drain(..open.len().saturating_sub(MAX_OPEN));
    Ok((certified, open))
}

/// Commits to `certificates`, in order.
pub fn certificates_root(certificates: &[Certificate]) -> Hash {
    let mut w = Writer::new();
    w.list(certificates.len());
    for certificate in certificates {
        certificate.encode(&mut w);
    }
    keccak256(&[b"cowboy-certificates/v1", &w.finish()])
}

/// Commits to `transactions`, in order.
pub fn transactions_root(transactions: &[SignedTransaction]) -> Hash {
    let mut hashes = Vec::with_capacity(32 * transactions.len());
    for transaction in transactions {
        hashes.extend_from_slice(&transaction.hash().0);
    }
    keccak256(&[b"cowboy-transactions/v1", &hashes])
}

impl Block {
    fn decode_with(
        r: &mut Reader<'_>,
        known: &impl KnownTransactions,
    ) -> Result<Self, DecodeError> {
        let (mut header, mut certificates, mut transactions) = (None, None, None);
        r.record(|key, r| {
            match key {
                "header" => header = Some(Decode::decode(r)?),
                "certificates" => certificates = Some(Decode::decode(r)?),
                "transactions" => transactions = Some(transaction::read_list(r, known)?),
                other => return Err(DecodeError::UnknownField(other.to_owned())),
            }
            Ok(())
        })?;
        Ok(Self {
            header: header.ok_or(DecodeError::MissingField("header"))?,
            certificates: certificates.ok_or(DecodeError::MissingField("certificates"))?,
            transactions: transactions.ok_or(DecodeError::MissingField("transactions"))?,
        })
    }

    pub fn hash(&self) -> Hash {
        self.header.hash()
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        to_vec(self)
    }

    /// Decodes a block and checks that its header commits to its contents.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::from_bytes_with(bytes, &NoneKnown)
    }

    /// As [`from_bytes`](Self::from_bytes), but takes the known copies of transactions, which are
    /// hashed already.
    pub fn from_bytes_with(
        bytes: &[u8],
        known: &impl KnownTransactions,
    ) -> Result<Self, DecodeError> {
        let block = Self::decode_with(&mut Reader::new(bytes), known)?;
        if to_vec(&block) != bytes {
            return Err(DecodeError::NotDeterministic);
        }
        if block.header.certificates_root != certificates_root(&block.certificates) {
            return Err(DecodeError::Invalid("certificates differ from their root"));
        }
        if block.header.transactions_root != transactions_root(&block.transactions) {
            return Err(DecodeError::Invalid("transactions differ from their root"));
        }
        Ok(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(heights: impl IntoIterator<Item = u64>) -> Vec<OpenAncestor> {
        heights
            .into_iter()
            .map(|h| OpenAncestor { height: Height::new(h), hash: hash(h) })
            .collect()
    }

    fn hash(height: u64) -> Hash {
        keccak256(&[&height.to_be_bytes()])
    }

    #[test]
    fn what_is_not_certified_stays_open_and_the_oldest_drop_out() {
        let check = |candidates: Vec<OpenAncestor>, certs: &[u64], left: Vec<OpenAncestor>| {
            let (heights, open) = certify(&candidates, certs.iter().map(|h| hash(*h))).unwrap();
            assert_eq!(heights, certs.iter().map(|h| Height::new(*h)).collect::<Vec<_>>());
            assert_eq!(open, left);
        };
        check(open([4]), &[4], open([]));
        check(open([2, 3, 4]), &[2, 4], open([3]));
        check(open([4]), &[], open([4]));
        check(open(1..=9), &[], open(2..=9));
        check(open(1..=9), &[1], open(2..=9));
    }

    #[test]
    fn what_a_certificate_gives_to_seeds_is_frozen() {
        let vote = |validator: u32| Vote {
            validator,
            presence: Bitmap::from_fn(3, |runner| runner == validator),
            signature: [validator as u8; 64],
        };
        let votes = vec![vote(0), vote(2), vote(3)];
        let certificate = Certificate { block: hash(7), round: Round::default(), votes };
        let digest = |embedder| certificate.seed_digest(embedder).to_string();
        let all = "0x232cbd2c6af72426883619f0115eae00ab12ec6f52ff8c3ab7c9387338e5710c";
        assert_eq!(digest(None), all);
        assert_eq!(digest(Some(1)), all, "it has no vote of that validator");
        let own = "0x94abf3cc2043904aa91f89594a3ea7b2fb1444012b6537b6a9a205f874152e2d";
        assert_eq!(digest(Some(2)), own, "without the embedder's");
        let mut other = certificate.clone();
        other.votes[1].signature[0] ^= 1;
        assert_eq!(other.seed_digest(Some(2)), certificate.seed_digest(Some(2)));
        assert_ne!(other.seed_digest(Some(3)), certificate.seed_digest(Some(3)));
    }

    #[test]
    fn a_stranger_or_a_repeat_is_refused() {
        let candidates = open([2, 3]);
        assert_eq!(certify(&candidates, [hash(7)]), Err(CertificateError::NoCandidate(hash(7))));
        let height = Height::new(2);
        assert_eq!(
            certify(&candidates, [hash(3), hash(2)]),
            Err(CertificateError::Order { height })
        );
        assert_eq!(
            certify(&candidates, [hash(2), hash(2)]),
            Err(CertificateError::Order { height })
        );
    }
}

//! The certificate scheme: attributable ed25519 votes, and finalize votes with a presence bitmap
//! (spec connectivity.md §4).
//!
//! In the namespace of its kind on this chain, a vote signs
//!
//! ```text
//! the subject's bytes | bit_length u32 BE | bitmap, ceil(bit_length / 8) bytes
//! ```
//!
//! [`BitmapSource`] provides the bitmap when a finalize vote is signed. Other votes carry the empty
//! bitmap; one with another bitmap is invalid. The bitmap is kept per block: Simplex compares
//! encoded votes, so signing a round twice in one process must give the same bytes. Across restarts
//! the vote comes from Simplex's journal.
//!
//! A certificate holds the votes of exactly a quorum. Its assembler chooses the quorum, so two
//! validators may hold different certificates of one block. The chain decides which one counts.

use super::{
    Finalization,
    vote::{MAX_VOTE, VoteSignature, Votes},
};
use bytes::{BufMut, Bytes, BytesMut};
use commonware_codec::{Copying, DecodeExt as _, types::lazy::Lazy};
use commonware_consensus::{
    simplex::{scheme::Namespace, types::Subject},
    types::{Epoch, Participant},
};
use commonware_cryptography::{
    BatchEntry, BatchVerifier as _, Digest, Signer as _, Verifier as _,
    certificate::{
        self, AssemblyError, Attestation, Membership, Namespace as _, Scoped,
        Subject as CertificateSubject, Verification,
    },
    ed25519::{PrivateKey, PublicKey, Signature},
};
use commonware_parallel::{Sequential, Strategy};
use commonware_utils::{
    N3f1, TryCollect as _,
    iter::NonEmpty,
    ordered::{Quorum as _, Set},
    sync::Mutex,
};
use cowboy_engine::{
    chain::{GenesisValidator, MAX_VALIDATORS, State, Vote},
    presence::Bitmap,
    primitives::Address,
};
use rand_core::CryptoRng;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
    sync::Arc,
};

/// Blocks whose bitmap is kept: Simplex signs for no block this far behind another.
const REMEMBERED_BLOCKS: usize = 256;

/// The source of a finalize vote's bitmap: the validator's view of the runners (spec
/// connectivity.md §3). Asked once per block; must neither block nor take long.
pub trait BitmapSource: Send + Sync + 'static {
    /// The runners that this validator sees as present. Their order is that of the registry as of
    /// the parent of the block with digest `block`, or the nearest one known.
    fn presence(&self, block: &[u8]) -> Bitmap;
}

/// Why validators cannot form a committee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommitteeError {
    #[error("the consensus key of validator {0} is not an ed25519 public key")]
    Key(Address),
    #[error("0x{} is not an ed25519 public key", hex::encode(.0))]
    NoKey([u8; 32]),
    #[error("two validators have the same consensus key")]
    Repeated,
}

/// The validators of an epoch, and the chain they vote on.
#[derive(Clone)]
pub struct Committee {
    validators: Set<PublicKey>,
    namespace: Namespace,
}

impl Committee {
    /// The committee of `validators` (in the order of their keys) on the chain `chain_id`.
    pub fn new(chain_id: u64, validators: Set<PublicKey>) -> Self {
        let mut namespace = b"cowboy/".to_vec();
        namespace.extend_from_slice(&chain_id.to_be_bytes());
        Self { validators, namespace: Namespace::derive(&namespace) }
    }

    /// The committee of the validators with these ed25519 keys, in any order.
    pub fn of_keys(chain_id: u64, keys: &[[u8; 32]]) -> Result<Self, CommitteeError> {
        let key = |key: &[u8; 32]| {
            PublicKey::decode(Copying(key)).map_err(|_| CommitteeError::NoKey(*key))
        };
        let keys = keys.iter().map(key).collect::<Result<Vec<_>, _>>()?;
        let keys = keys.into_iter().try_collect().map_err(|_| CommitteeError::Repeated)?;
        Ok(Self::new(chain_id, keys))
    }

    pub fn of(chain_id: u64, validators: &[GenesisValidator]) -> Result<Self, CommitteeError> {
        let key = |validator: &GenesisValidator| {
            PublicKey::decode(Copying(&validator.consensus_key))
                .map_err(|_| CommitteeError::Key(validator.pubkey.address()))
        };
        let keys = validators.iter().map(key).collect::<Result<Vec<_>, _>>()?;
        let keys = keys.into_iter().try_collect().map_err(|_| CommitteeError::Repeated)?;
        Ok(Self::new(chain_id, keys))
    }

    /// The validators' keys, in the order of their numbers in votes.
    pub const fn validators(&self) -> &Set<PublicKey> {
        &self.validators
    }

    /// The number of votes in a certificate: n − floor((n − 1) / 3).
    pub fn quorum(&self) -> usize {
        self.validators.quorum::<N3f1>() as usize
    }

    pub fn key(&self, index: u32) -> Option<&PublicKey> {
        self.validators.key(Participant::new(index))
    }

    pub(super) fn verify_vote<D: Digest>(&self, subject: &Subject<'_, D>, vote: &Vote) -> bool {
        self.stage(subject, vote.validator, &vote.presence, vote.signature)
            .is_some_and(|item| item.key.verify(item.namespace, &item.message, &item.signature))
    }

    /// The signature to verify for a vote; `None` if the vote cannot be valid.
    fn stage<D: Digest>(
        &self,
        subject: &Subject<'_, D>,
        validator: u32,
        presence: &Bitmap,
        signature: [u8; 64],
    ) -> Option<Item<'_>> {
        Some(Item {
            namespace: CertificateSubject::namespace(subject, &self.namespace),
            message: message(subject, presence)?,
            key: self.key(validator)?,
            signature: Signature::decode(Copying(&signature)).ok()?,
        })
    }

    fn stage_certificate<'a, D: Digest>(
        &'a self,
        subject: &Subject<'_, D>,
        votes: &Votes,
        items: &mut Vec<Item<'a>>,
    ) -> bool {
        let ascending = votes.0.windows(2).all(|pair| pair[0].validator < pair[1].validator);
        ascending
            && votes.0.len() == self.quorum()
            && votes.0.iter().all(|vote| {
                let item = self.stage(subject, vote.validator, &vote.presence, vote.signature);
                item.map(|item| items.push(item)).is_some()
            })
    }
}

impl fmt::Debug for Committee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Committee({} validators)", self.validators.len())
    }
}

struct Item<'a> {
    namespace: &'a [u8],
    message: Bytes,
    key: &'a PublicKey,
    signature: Signature,
}

fn verify_all<R: CryptoRng>(rng: &mut R, items: &[Item<'_>], strategy: &impl Strategy) -> bool {
    PublicKey::verify_batch(
        rng,
        items,
        |_, item| BatchEntry {
            namespace: item.namespace,
            message: &item.message,
            public_key: item.key,
            signature: &item.signature,
        },
        strategy,
    )
}

/// The signed bytes; `None` if a bitmap is given for a subject that carries none.
fn message<D: Digest>(subject: &Subject<'_, D>, presence: &Bitmap) -> Option<Bytes> {
    if !matches!(subject, Subject::Finalize { .. }) && !presence.is_empty() {
        return None;
    }
    let subject = CertificateSubject::message(subject);
    let bitmap = presence.as_bytes();
    let mut message = BytesMut::with_capacity(subject.len() + 4 + bitmap.len());
    message.put_slice(&subject);
    message.put_u32(presence.len());
    message.put_slice(bitmap);
    Some(message.freeze())
}

#[derive(Clone)]
struct Local {
    index: Participant,
    key: PrivateKey,
    source: Arc<dyn BitmapSource>,
    remembered: Arc<Mutex<RecentVotes>>,
}

/// The bitmaps of recent votes. An epoch's last block is proposed in several rounds until it is
/// final, and has one bitmap in all of them.
#[derive(Default)]
struct RecentVotes {
    by_block: BTreeMap<Vec<u8>, Bitmap>,
    /// Keys of `by_block`, oldest first.
    order: VecDeque<Vec<u8>>,
}

impl Local {
    fn presence<D: Digest>(&self, subject: &Subject<'_, D>) -> Bitmap {
        let Subject::Finalize { proposal } = subject else {
            return Bitmap::new(0);
        };
        let mut remembered = self.remembered.lock();
        let block = proposal.payload.as_ref();
        if let Some(presence) = remembered.by_block.get(block) {
            return presence.clone();
        }
        let presence = self.source.presence(block);
        remembered.by_block.insert(block.to_vec(), presence.clone());
        remembered.order.push_back(block.to_vec());
        while remembered.order.len() > REMEMBERED_BLOCKS {
            let oldest = remembered.order.pop_front().expect("longer than REMEMBERED_BLOCKS");
            remembered.by_block.remove(&oldest);
        }
        presence
    }
}

/// Signs and verifies votes of one epoch.
#[derive(Clone)]
pub struct Scheme {
    committee: Arc<Committee>,
    local: Option<Local>,
}

impl Scheme {
    /// A scheme that signs with `key` if the committee contains it, and otherwise only verifies.
    pub fn new(committee: Arc<Committee>, key: PrivateKey, source: Arc<dyn BitmapSource>) -> Self {
        let local = committee.validators.index(&key.public_key()).map(|index| Local {
            index,
            key,
            source,
            remembered: Arc::default(),
        });
        Self { committee, local }
    }

    pub const fn committee(&self) -> &Arc<Committee> {
        &self.committee
    }

    /// Whether `finalization` is valid. Votes that it shares with `held`, which is valid, are not
    /// verified again: two validators' quorums of one block differ in few votes.
    pub(super) fn verify_beyond<R: CryptoRng>(
        &self,
        rng: &mut R,
        finalization: &Finalization,
        held: Option<&Finalization>,
    ) -> bool {
        let Finalization { proposal, certificate } = finalization;
        let mut items = Vec::new();
        if !self.committee.stage_certificate(
            &Subject::Finalize { proposal },
            certificate,
            &mut items,
        ) {
            return false;
        }
        let held = held.filter(|held| held.proposal == *proposal);
        let known = held.map_or(&[][..], |held| &held.certificate.0);
        let mut votes = certificate.0.iter();
        items.retain(|_| votes.next().is_some_and(|vote| !known.contains(vote)));
        items.is_empty() || verify_all(rng, &items, &Sequential)
    }
}

impl fmt::Debug for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheme")
            .field("committee", &self.committee)
            .field("signer", &self.local.as_ref().map(|local| local.index))
            .finish()
    }
}

impl certificate::Verifier for Scheme {
    type Subject<'a, D: Digest> = Subject<'a, D>;
    type Faults = N3f1;
    type PublicKey = PublicKey;
    type Certificate = Votes;

    fn verify_certificate<R: CryptoRng, D: Digest>(
        &self,
        rng: &mut R,
        subject: Subject<'_, D>,
        certificate: &Votes,
        strategy: &impl Strategy,
    ) -> bool {
        let mut items = Vec::with_capacity(certificate.0.len());
        self.committee.stage_certificate(&subject, certificate, &mut items)
            && verify_all(rng, &items, strategy)
    }

    fn verify_certificates<'a, R, D, I>(
        &self,
        rng: &mut R,
        certificates: NonEmpty<I>,
        strategy: &impl Strategy,
    ) -> bool
    where
        R: CryptoRng,
        D: Digest,
        I: Iterator<Item = (Subject<'a, D>, &'a Votes)>,
    {
        let mut items = Vec::new();
        for (subject, certificate) in certificates {
            if !self.committee.stage_certificate(&subject, certificate, &mut items) {
                return false;
            }
        }
        verify_all(rng, &items, strategy)
    }

    fn is_batchable() -> bool {
        true
    }

    fn max_certificate_size(participants: u32) -> usize {
        5 + participants as usize * MAX_VOTE
    }

    fn certificate_codec_config(&self) -> usize {
        self.committee.validators.len()
    }

    fn certificate_codec_config_unbounded() -> usize {
        u32::MAX as usize
    }
}

impl certificate::Scheme for Scheme {
    type Signature = VoteSignature;

    fn me(&self) -> Option<Membership> {
        self.local.as_ref().map(|local| Membership::Signer(local.index))
    }

    fn participants(&self) -> &Set<PublicKey> {
        &self.committee.validators
    }

    fn sign<D: Digest>(&self, subject: Subject<'_, D>) -> Option<Attestation<Self>> {
        let local = self.local.as_ref()?;
        let presence = local.presence(&subject);
        let message = message(&subject, &presence).expect("only finalize votes get a bitmap");
        let namespace = CertificateSubject::namespace(&subject, &self.committee.namespace);
        let signature = to_array(&local.key.sign(namespace, &message));
        let signature = Lazy::new(VoteSignature { presence, signature });
        Some(Attestation { signer: local.index, signature })
    }

    fn verify_attestation<R: CryptoRng, D: Digest>(
        &self,
        _: &mut R,
        subject: Subject<'_, D>,
        attestation: &Attestation<Self>,
        _: &impl Strategy,
    ) -> bool {
        to_vote(attestation).is_some_and(|vote| self.committee.verify_vote(&subject, &vote))
    }

    fn verify_attestations<R, D, I>(
        &self,
        rng: &mut R,
        subject: Subject<'_, D>,
        attestations: I,
        strategy: &impl Strategy,
    ) -> Verification<Self>
    where
        R: CryptoRng,
        D: Digest,
        I: IntoIterator<Item = Attestation<Self>>,
        I::IntoIter: Send,
    {
        let mut invalid = BTreeSet::new();
        let mut candidates = Vec::new();
        let mut items = Vec::new();
        for attestation in attestations {
            let item = attestation.signature.get().and_then(|vote| {
                let signer = attestation.signer.get();
                self.committee.stage(&subject, signer, &vote.presence, vote.signature)
            });
            match item {
                Some(item) => {
                    items.push(item);
                    candidates.push(attestation);
                }
                None => {
                    invalid.insert(attestation.signer);
                }
            }
        }
        if !items.is_empty() && !verify_all(rng, &items, strategy) {
            for (attestation, item) in candidates.iter().zip(&items) {
                if !item.key.verify(item.namespace, &item.message, &item.signature) {
                    invalid.insert(attestation.signer);
                }
            }
        }
        candidates.retain(|attestation| !invalid.contains(&attestation.signer));
        Verification::new(candidates, invalid.into_iter().collect())
    }

    fn optimistic_assemble<'a, R, D, I, J>(
        &self,
        rng: &mut R,
        subject: Subject<'_, D>,
        pending: I,
        verified: J,
        strategy: &impl Strategy,
    ) -> Result<Votes, Verification<Self>>
    where
        R: CryptoRng,
        D: Digest,
        I: IntoIterator<Item = Attestation<Self>>,
        I::IntoIter: ExactSizeIterator + Send,
        J: IntoIterator<Item = &'a Attestation<Self>>,
        J::IntoIter: Send,
    {
        certificate::verify_then_assemble::<Self, _, D, _, _>(
            self, rng, subject, pending, verified, strategy,
        )
    }

    /// Assembles a certificate from the first quorum of the votes in the given order.
    fn assemble<I: Iterator<Item = Attestation<Self>> + Send>(
        &self,
        attestations: NonEmpty<I>,
        _: &impl Strategy,
    ) -> Result<Votes, AssemblyError> {
        let mut votes = BTreeMap::new();
        for attestation in attestations {
            let signer = attestation.signer;
            if self.committee.key(signer.get()).is_none() {
                return Err(AssemblyError::UnknownSigner(signer));
            }
            let vote = to_vote(&attestation).ok_or(AssemblyError::MalformedSignature(signer))?;
            if votes.contains_key(&signer) {
                return Err(AssemblyError::DuplicateSigner(signer));
            }
            if votes.len() < self.committee.quorum() {
                votes.insert(signer, vote);
            }
        }
        if votes.len() < self.committee.quorum() {
            let required = self.committee.validators.quorum::<N3f1>();
            return Err(AssemblyError::InsufficientAttestations(required, votes.len() as u32));
        }
        Ok(Votes(votes.into_values().collect()))
    }

    fn is_attributable() -> bool {
        true
    }
}

fn to_vote(attestation: &Attestation<Scheme>) -> Option<Vote> {
    attestation.signature.get().map(|vote| Vote {
        validator: attestation.signer.get(),
        presence: vote.presence.clone(),
        signature: vote.signature,
    })
}

fn to_array(signature: &Signature) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes.copy_from_slice(signature.as_ref());
    bytes
}

/// The schemes of all epochs known to this validator. Clones share them.
#[derive(Clone)]
pub struct Schemes(Arc<SchemeInner>);

struct SchemeInner {
    key: PrivateKey,
    source: Arc<dyn BitmapSource>,
    known: Mutex<KnownVotes>,
}

#[derive(Default)]
struct KnownVotes {
    /// By the first epoch of each committee.
    schemes: BTreeMap<u64, Arc<Scheme>>,
    /// The newest epoch whose committee is decided.
    newest: u64,
}

impl Schemes {
    /// The schemes of a validator with `key` as far as `state` knows the committees.
    pub fn new(
        key: PrivateKey,
        source: Arc<dyn BitmapSource>,
        state: &State,
    ) -> Result<Self, CommitteeError> {
        let schemes = Self(Arc::new(SchemeInner { key, source, known: Mutex::default() }));
        schemes.learn(state)?;
        Ok(schemes)
    }

    /// Adds the committees that `state` decides, up to the epoch of the next block.
    pub fn learn(&self, state: &State) -> Result<(), CommitteeError> {
        let newest = state.epoch_at(state.height().next());
        let SchemeInner { key, source, known } = &*self.0;
        let mut known = known.lock();
        for (epoch, validators) in state.validator_sets() {
            if epoch <= newest && !known.schemes.contains_key(&epoch) {
                let committee = Arc::new(Committee::of(state.chain_id(), validators)?);
                let scheme = Scheme::new(committee, key.clone(), source.clone());
                known.schemes.insert(epoch, Arc::new(scheme));
            }
        }
        known.newest = known.newest.max(newest);
        Ok(())
    }

    pub fn newest(&self) -> Option<Arc<Scheme>> {
        let newest = self.0.known.lock().newest;
        self.of(Epoch::new(newest))
    }

    /// The scheme of the committee of `epoch`; `None` if this validator does not know it yet.
    pub fn of(&self, epoch: Epoch) -> Option<Arc<Scheme>> {
        let known = self.0.known.lock();
        let (_, scheme) = known.schemes.range(..=epoch.get()).next_back()?;
        (epoch.get() <= known.newest).then(|| scheme.clone())
    }
}

/// The maximum size of a committee.
pub const MAX_PARTICIPANTS: u32 = MAX_VALIDATORS as u32;

impl certificate::Provider for Schemes {
    type Scope = Epoch;
    type Scheme = Scheme;

    fn scoped(&self, epoch: Epoch) -> Option<Scoped<Scheme>> {
        let scheme = self.of(epoch)?;
        Some(match scheme.local {
            Some(_) => Scoped::scheme(scheme),
            None => Scoped::verifier(scheme),
        })
    }
}

#[cfg(test)]
mod tests;

//! Votes that sign bitmaps, and certificates of exactly a quorum.

use super::*;
use crate::consensus::{
    Digest, Finalization,
    certificate::{self, CertificateError},
};
use commonware_codec::{Encode as _, FixedSize as _};
use commonware_consensus::{
    simplex::types::{Finalize, Notarize, Nullify, Proposal},
    types::{Round, View},
};
use commonware_cryptography::certificate::Scheme as _;
use commonware_parallel::Sequential;
use commonware_utils::non_empty;
use cowboy_engine::primitives::keccak256;
use rand_core::SeedableRng as _;
use std::sync::atomic::{AtomicU32, Ordering};

const CHAIN: u64 = 0xc0b0;
const RUNNERS: u32 = 21;

/// Sees one more runner each time it is asked, but never the one with the validator's own number.
struct Moving(u32, AtomicU32);

impl BitmapSource for Moving {
    fn presence(&self, _: &[u8]) -> Bitmap {
        let seen = self.1.fetch_add(1, Ordering::Relaxed);
        Bitmap::from_fn(RUNNERS, |runner| runner <= seen && runner != self.0)
    }
}

/// A scheme per validator, in the order of their numbers in votes.
fn schemes(chain: u64, validators: u64) -> Vec<Scheme> {
    let mut keys: Vec<_> = (0..validators).map(PrivateKey::from_seed).collect();
    keys.sort_by_key(PrivateKey::public_key);
    let set = keys.iter().map(PrivateKey::public_key).try_collect().expect("keys differ");
    let committee = Arc::new(Committee::new(chain, set));
    let scheme = |(index, key)| {
        let source = Arc::new(Moving(index as u32, AtomicU32::new(10)));
        Scheme::new(committee.clone(), key, source)
    };
    keys.into_iter().enumerate().map(scheme).collect()
}

fn proposal(view: u64) -> Proposal<Digest> {
    let payload = certificate::digest(keccak256(&[&view.to_be_bytes()]));
    Proposal::new(Round::new(Epoch::zero(), View::new(view)), View::new(view - 1), payload)
}

fn finalize(scheme: &Scheme, view: u64) -> Finalize<Scheme, Digest> {
    Finalize::sign(scheme, proposal(view)).expect("a member of the committee signs")
}

/// A finalization of the block of `view` by the votes of `voters`.
fn finalization(schemes: &[Scheme], view: u64, voters: &[usize]) -> Finalization {
    let votes: Vec<_> = voters.iter().map(|voter| finalize(&schemes[*voter], view)).collect();
    Finalization::from_finalizes(&schemes[0], non_empty![@&votes], &Sequential)
        .expect("a quorum of votes")
}

fn rng() -> rand_chacha::ChaCha20Rng {
    rand_chacha::ChaCha20Rng::seed_from_u64(7)
}

#[test]
fn a_vote_signs_its_bitmap() {
    let schemes = schemes(CHAIN, 4);
    let vote = finalize(&schemes[1], 5);
    assert!(vote.verify(&mut rng(), &schemes[0], &Sequential));
    let signature = vote.attestation.signature.get().expect("just signed");
    assert_eq!(signature.presence.len(), RUNNERS);

    let mut other = signature.clone();
    other.presence.set(1, !other.presence.get(1));
    let mut forged = vote.clone();
    forged.attestation.signature = Lazy::new(other);
    assert!(!forged.verify(&mut rng(), &schemes[0], &Sequential));

    // One absent runner fewer: the same bits, but another statement.
    let mut shorter = signature.clone();
    shorter.presence = Bitmap::from_fn(RUNNERS - 1, |runner| signature.presence.get(runner));
    let mut forged = vote;
    forged.attestation.signature = Lazy::new(shorter);
    assert!(!forged.verify(&mut rng(), &schemes[0], &Sequential));
}

#[test]
fn a_round_is_signed_once_and_the_same_ever_after() {
    let schemes = schemes(CHAIN, 4);
    let first = finalize(&schemes[2], 5);
    assert_ne!(
        finalize(&schemes[2], 6).attestation.signature.get().expect("signed").presence,
        first.attestation.signature.get().expect("signed").presence,
    );
    assert_eq!(finalize(&schemes[2], 5).encode(), first.encode());
}

#[test]
fn only_finalize_votes_carry_a_bitmap() {
    let schemes = schemes(CHAIN, 4);
    let notarize = Notarize::sign(&schemes[0], proposal(5)).expect("a member signs");
    let nullify = Nullify::sign::<Digest>(&schemes[0], proposal(5).round).expect("a member signs");
    for signature in [&notarize.attestation.signature, &nullify.attestation.signature] {
        assert!(signature.get().expect("signed").presence.is_empty());
    }
    assert!(notarize.verify(&mut rng(), &schemes[1], &Sequential));
    assert!(nullify.verify::<_, Digest>(&mut rng(), &schemes[1], &Sequential));

    let mut forged = notarize;
    let signature = forged.attestation.signature.get().expect("signed").clone();
    forged.attestation.signature =
        Lazy::new(VoteSignature { presence: Bitmap::new(1), ..signature });
    assert!(!forged.verify(&mut rng(), &schemes[1], &Sequential));
}

#[test]
fn votes_are_for_one_chain() {
    let vote = finalize(&schemes(CHAIN, 4)[0], 5);
    assert!(!vote.verify(&mut rng(), &schemes(CHAIN + 1, 4)[1], &Sequential));
    assert_eq!(VoteSignature::SIZE, 4 + 512 + 64);
}

#[test]
fn a_certificate_holds_exactly_a_quorum() {
    let schemes = schemes(CHAIN, 4);
    let certified = finalization(&schemes, 5, &[3, 0, 2, 1]);
    let voters: Vec<_> = certified.certificate.0.iter().map(|vote| vote.validator).collect();
    assert_eq!(voters, [0, 2, 3], "the first three to come, ascending");
    assert!(certified.verify(&mut rng(), &schemes[1], &Sequential));

    let mut more = certified.clone();
    let fourth = finalization(&schemes, 5, &[1, 2, 3]).certificate.0[0].clone();
    more.certificate.0.insert(1, fourth);
    assert!(!more.verify(&mut rng(), &schemes[1], &Sequential), "every vote valid, one too many");

    let mut fewer = certified;
    fewer.certificate.0.pop();
    assert!(!fewer.verify(&mut rng(), &schemes[1], &Sequential));
    let two: Vec<_> = schemes[..2].iter().map(|scheme| finalize(scheme, 5)).collect();
    assert!(
        Finalization::from_finalizes(&schemes[0], non_empty![@&two], &Sequential).is_err(),
        "two of four are not a quorum"
    );
}

#[test]
fn invalid_votes_are_named_among_valid_ones() {
    let schemes = schemes(CHAIN, 7);
    let attestations = (0..7).map(|voter| {
        let view = if voter == 4 { 6 } else { 5 };
        finalize(&schemes[voter], view).attestation
    });
    let proposal = proposal(5);
    let subject = Subject::Finalize { proposal: &proposal };
    let verification =
        schemes[0].verify_attestations(&mut rng(), subject, attestations, &Sequential);
    assert_eq!(verification.invalid, [Participant::new(4)]);
    assert_eq!(verification.verified.len(), 6);
}

#[test]
fn only_votes_that_a_held_certificate_lacks_are_verified() {
    let schemes = schemes(CHAIN, 4);
    let held = finalization(&schemes, 5, &[0, 1, 2]);
    let other = finalization(&schemes, 5, &[0, 1, 3]);
    let check = |change: fn(&mut Finalization), known: Option<&Finalization>, expected| {
        let mut changed = other.clone();
        change(&mut changed);
        assert_eq!(schemes[2].verify_beyond(&mut rng(), &changed, known), expected);
    };
    check(|_| (), None, true);
    check(|_| (), Some(&held), true);
    check(|changed| changed.certificate.0[2].signature[9] ^= 1, Some(&held), false);
    check(|changed| changed.certificate.0[1].signature[9] ^= 1, Some(&held), false);
    check(|changed| changed.certificate.0[1].presence.set(1, true), Some(&held), false);
    check(|changed| changed.certificate.0.truncate(2), Some(&held), false);
    check(|changed| changed.proposal = proposal(6), Some(&held), false);
    // A vote counts as verified only for what it was verified for.
    let mut lying = held.clone();
    lying.proposal = proposal(6);
    assert!(!schemes[2].verify_beyond(&mut rng(), &lying, Some(&held)));
    assert!(schemes[2].verify_beyond(&mut rng(), &held, Some(&held)));
}

#[test]
fn certificates_of_the_chain_convert_and_verify() {
    let schemes = schemes(CHAIN, 4);
    let certified = finalization(&schemes, 5, &[0, 1, 3]);
    let on_chain = certificate::from_finalization(&certified);
    assert_eq!(certificate::to_finalization(&on_chain), certified);
    let committee = schemes[0].committee();
    let check = |change: fn(&mut cowboy_engine::chain::Certificate), expected| {
        let mut changed = on_chain.clone();
        change(&mut changed);
        assert_eq!(certificate::verify(committee, &changed), expected);
    };
    let signature = |validator| {
        let key = committee.key(validator).expect("a member").as_ref();
        let key = key.try_into().expect("an ed25519 public key has 32 bytes");
        Err(CertificateError::Signature { validator, key })
    };
    check(|_| (), Ok(()));
    check(
        |changed| {
            let presence = &mut changed.votes[1].presence;
            presence.set(3, !presence.get(3));
        },
        signature(1),
    );
    check(|changed| changed.votes[2].signature[9] ^= 1, signature(3));
    check(|changed| changed.round.view += 1, signature(0));
    check(|changed| changed.block.0[0] ^= 1, signature(0));
    check(
        |changed| changed.votes.truncate(2),
        Err(CertificateError::Votes { got: 2, expected: 3 }),
    );
    check(
        |changed| changed.votes.swap(0, 1),
        Err(CertificateError::Order { validator: 0, after: 1 }),
    );
    check(
        |changed| changed.votes[2].validator = 9,
        Err(CertificateError::UnknownValidator { validator: 9, validators: 4 }),
    );
}

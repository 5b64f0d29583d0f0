//! Proofs that hold, and proofs that do not.

use super::*;
use crate::{
    runner::KnownValidators,
    sample::{certificate, spec},
};
use commonware_cryptography::{Signer as _, ed25519::PrivateKey};
use cowboy_engine::{
    chain::{Evidence, Executed, ProvedEntry},
    job::spec::{Assignment, JobSpec, JobStatus},
    primitives::{Height, SecretKey, keccak256, merkle},
};
use std::sync::Arc;

const CHAIN: u64 = 7;
/// The index of the jobs within the state root.
const JOBS: usize = 3;

/// The validators of [`proof`].
fn voters() -> Vec<PrivateKey> {
    (0..4).map(PrivateKey::from_seed).collect()
}

/// What a runner must know to accept [`proof`].
pub(in crate::runner) fn known() -> KnownValidators {
    let mut known = KnownValidators::default();
    let key = |key: &PrivateKey| key.public_key().as_ref().try_into().expect("32 bytes");
    known.learn(0, voters().iter().map(key).collect());
    known
}

/// A job with this id, assigned to `runner` by block 9 and due by block 100.
pub(in crate::runner) fn job(spec: JobSpec, runner: Address) -> Job {
    let since = Height::new(100 - spec.timeout_blocks);
    let mut job = Job::new(Arc::new(spec), (Address([7; 20]), 0), since);
    job.status = JobStatus::Assigned(Assignment {
        height: Height::new(9),
        timestamp_ms: 0,
        seed: Hash::ZERO,
        candidates_root: Hash::ZERO,
        committee: vec![runner],
    });
    job
}

/// The proof of a job in a state that has it and another one, signed by `voters`.
fn signed(job_id: Hash, job: &Job, epoch: u64, voters: &[PrivateKey]) -> Vec<u8> {
    let other = Hash([0xff; 32]);
    let jobs: merkle::Map<Hash, Job> =
        [(job_id, job.clone()), (other, job.clone())].into_iter().collect();
    let mut parts = [Hash([1; 32]); cowboy_engine::chain::PARTS];
    parts[JOBS] = jobs.root();
    let joined = parts.map(|part| part.0).concat();
    let state_root = keccak256(&[b"cowboy-state/v2", &joined]);
    let mut header = crate::sample::genesis(1, 0).state().expect("a chain").head().clone();
    header.height = Height::new(12);
    (header.round.epoch, header.round.view, header.round.parent_view) = (epoch, 12, 11);
    header.executed = Executed { height: Height::new(10), state_root };
    let certificate = certificate(CHAIN, &header, voters);
    let proof = jobs.prove(&job_id).expect("it is there");
    let entry = ProvedEntry::Present(to_vec(job), proof);
    let evidence = Evidence::Entry { entry, order: None };
    StateProof { subject: Subject::Job(job_id), header, certificate, parts, evidence }
        .to_bytes()
        .expect("it is short")
}

/// A proof that a runner with [`known`] accepts.
pub(in crate::runner) fn proof(job_id: Hash, job: &Job) -> Vec<u8> {
    signed(job_id, job, 0, &voters())
}

#[test]
fn an_assignment_is_believed_only_where_its_validators_have_signed_it() {
    let (job_id, runner) = (Hash([4; 32]), SecretKey::derive(b"proof", "runner").address());
    let own = job(spec(40), runner);
    let shown = |bytes: &[u8]| read(&known(), (CHAIN, runner), &job_id, bytes);
    let read = |bytes: &[u8]| shown(bytes)?.assignment(&job_id);
    let attempt =
        ProposedAttempt { job_id, assigned_at: Height::new(9), deadline: Height::new(100) };
    let bytes = proof(job_id, &own);
    assert_eq!(read(&bytes).unwrap(), (attempt, to_vec(&*own.spec)));
    let error = shown(&bytes).unwrap().end(&job_id).unwrap_err().to_string();
    assert!(error.ends_with("is Assigned at block 10"), "{error}");

    let fails = |bytes: Vec<u8>, expected: &str| {
        let error = read(&bytes).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    let strangers: Vec<_> = (10..14).map(PrivateKey::from_seed).collect();
    fails(signed(job_id, &own, 0, &strangers), "the vote of validator 0");
    fails(signed(job_id, &own, 1, &voters()), "the validators of epoch 1 are not known");
    fails(signed(job_id, &own, 0, &voters()[..3]), "the vote of validator");
    fails(proof(Hash([5; 32]), &own), "it is about job 0x0505");
    fails(proof(job_id, &job(spec(40), Address([9; 20]))), "job 0x0404");
    let over = Job { status: JobStatus::Pending, ..own.clone() };
    fails(proof(job_id, &over), "job 0x0404");
    let end = shown(&proof(job_id, &over)).unwrap().end(&job_id);
    assert_eq!(end.unwrap(), Height::new(10));
    for at in (0..bytes.len()).step_by(7) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(read(&changed).is_err(), "byte {at}");
    }
}

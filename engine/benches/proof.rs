//! Proofs, on one core unless noted, each compared with bare ark-groth16 on the same circuit:
//! `cargo bench -p cowboy-engine --bench proof`.
//!
//! Ours prove from a witness to 388 bytes and verify from 388 bytes, with every check of their
//! form; theirs begin and end with points in memory.

use ark_bn254::{Bn254, Fr};
use ark_ff::PrimeField as _;
use ark_groth16::{Groth16, prepare_verifying_key};
use cowboy_engine::{
    chain::{inputs_digest, statement_task, tasks::MAX_PARENTS},
    primitives::{Hash, keccak256},
    proof::{
        Element, PROOF_BYTES, Prover, ProvingKey, Statement, VerifyingKey, Witness,
        circuit::{CONSTRAINTS, Circuit},
        groth16::Reduction,
    },
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand_chacha_03::{ChaCha20Rng, rand_core::SeedableRng as _};
use std::{hint::black_box, thread};

/// Proofs in a block.
const BLOCK: u32 = 64;

/// Pseudo-random, the same in every run.
fn random(n: u32) -> [u8; 32] {
    keccak256(&[&n.to_be_bytes()]).0
}

fn element(n: u32) -> Element {
    Element::reduce(&random(n))
}

fn witness(n: u32) -> Witness {
    Witness { output: [n, n + 1, n + 2, n + 3].map(element), salt: element(n + 4) }
}

fn prove(c: &mut Criterion) {
    let prover = Prover::new(ProvingKey::setup(&random(0)));
    let (task, agent) = (random(1), random(2));
    let mut group = c.benchmark_group(format!("prove, {CONSTRAINTS} constraints"));
    group.sample_size(20).throughput(Throughput::Elements(1));
    let mut n = 0;
    group.bench_function("ours", |b| {
        b.iter(|| {
            n += 1;
            prover.prove(&task, &agent, &witness(n), &random(n)).to_bytes()
        });
    });
    let mut randomness = ChaCha20Rng::from_seed(random(0));
    let key = Groth16::<Bn254>::generate_random_parameters_with_reduction(
        Circuit::blank(),
        &mut randomness,
    );
    let key = key.expect("a key of arkworks");
    group.bench_function("ark-groth16", |b| {
        b.iter(|| {
            n += 1;
            let statement = Statement::of(&task, &agent, &witness(n));
            Groth16::<Bn254>::create_random_proof_with_reduction(
                Circuit::of(&statement, &witness(n)),
                &key,
                &mut randomness,
            )
        });
    });
    group.finish();

    let mut group = c.benchmark_group("prove on two cores");
    group.sample_size(20).throughput(Throughput::Elements(2));
    group.bench_function("ours, two at once", |b| {
        b.iter(|| {
            n += 2;
            thread::scope(|scope| {
                for n in [n, n + 1] {
                    let (prover, task, agent) = (&prover, &task, &agent);
                    scope.spawn(move || {
                        prover.prove(task, agent, &witness(n), &random(n)).to_bytes()
                    });
                }
            });
        });
    });
    group.finish();

    let mut group = c.benchmark_group("keys");
    group.sample_size(10);
    group.bench_function("setup", |b| b.iter(|| ProvingKey::setup(black_box(&random(0)))));
    let key = prover.key();
    let bytes = key.to_bytes();
    let bytes: &[u8; _] = bytes.as_slice().try_into().expect("a key's bytes");
    group.bench_function("read a proving key", |b| b.iter(|| ProvingKey::from_bytes(bytes)));
    group.bench_function("make ready to prove", |b| b.iter(|| Prover::new(key.clone())));
    let bytes = key.verifying_key().to_bytes();
    let bytes: &[u8; _] = bytes.as_slice().try_into().expect("a key's bytes");
    group.bench_function("read a verifying key", |b| b.iter(|| VerifyingKey::from_bytes(bytes)));
    group.finish();
}

/// The cost of a commitment and a completion beyond the proof: the digest of the inputs of a task
/// with the most parents, and its name in the statement.
fn bind(c: &mut Criterion) {
    let parents: Vec<_> = (0..MAX_PARENTS as u32)
        .map(|n| (Hash(random(n)), witness(n).output_commitment()))
        .collect();
    let task_id = Hash(random(99));
    let mut group = c.benchmark_group(format!("bind {MAX_PARENTS} parents"));
    group.bench_function("digest and name", |b| {
        b.iter(|| {
            let inputs = inputs_digest(black_box(&parents).iter().copied());
            statement_task(&task_id, &inputs)
        });
    });
    group.finish();
}

fn verify(c: &mut Criterion) {
    let prover = Prover::new(ProvingKey::setup(&random(0)));
    let key = prover.key().verifying_key();
    let proofs: Vec<(Statement, [u8; PROOF_BYTES])> = (0..BLOCK)
        .map(|n| {
            let proof = prover.prove(&random(n), &random(2), &witness(n), &random(n));
            (proof.statement, proof.to_bytes())
        })
        .collect();
    let batch: Vec<_> =
        proofs.iter().map(|(statement, bytes)| (*statement, bytes.as_slice())).collect();
    assert!(key.verify_batch(&batch).iter().all(Result::is_ok));

    let mut group = c.benchmark_group("verify");
    let (statement, bytes) = &batch[0];
    group.bench_function("ours", |b| b.iter(|| key.verify(statement, black_box(bytes))));
    let prepared = prepare_verifying_key(key.arkworks());
    let inputs = statement.inputs().map(|input| Fr::from_be_bytes_mod_order(&input.to_bytes()));
    let proof = Groth16::<Bn254, Reduction>::create_proof_with_reduction_no_zk(
        Circuit::of(&Statement::of(&random(0), &random(2), &witness(0)), &witness(0)),
        prover.key().arkworks(),
    );
    let proof = proof.expect("a proof");
    assert_eq!(Groth16::<Bn254>::verify_proof(&prepared, &proof, &inputs), Ok(true));
    group.bench_function("ark-groth16", |b| {
        b.iter(|| Groth16::<Bn254>::verify_proof(&prepared, black_box(&proof), &inputs));
    });
    group.finish();

    let mut group = c.benchmark_group(format!("verify a block of {BLOCK}"));
    group.sample_size(20).throughput(Throughput::Elements(BLOCK.into()));
    group.bench_function("at once", |b| b.iter(|| key.verify_batch(black_box(&batch))));
    group.bench_function("one by one", |b| {
        b.iter(|| batch.iter().all(|(statement, bytes)| key.verify(statement, bytes).is_ok()));
    });
    // A proof with the A of another does not hold, so each is verified by itself after all.
    let mut bytes = proofs[7].1;
    bytes[..64].copy_from_slice(&proofs[8].1[..64]);
    let mut bad = batch.clone();
    bad[7].1 = &bytes;
    group.bench_function("at once, one bad", |b| b.iter(|| key.verify_batch(black_box(&bad))));
    group.finish();
}

criterion_group!(benches, prove, verify, bind);
criterion_main!(benches);

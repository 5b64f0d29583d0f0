//! Proofs that hold, and everything that must not.

use super::{
    circuit::{CONSTRAINTS, Circuit, CircuitValues, WITNESSES},
    format::{INPUT_NAMES, POINTS_BYTES},
    groth16::{
        Reduction,
        keys::{PROVING_KEY_BYTES, VERIFYING_KEY_BYTES},
    },
    points::Point,
    statement::INPUTS,
    *,
};
use crate::primitives::{
    codec::{DecodeError, from_slice, to_vec},
    keccak256,
};
use ark_bn254::{Bn254, Fq, Fq2, Fr, G1Affine, G2Affine};
use ark_ec::AffineRepr as _;
use ark_ff::{BigInteger as _, PrimeField as _};
use ark_groth16::Groth16;
use ark_relations::gr1cs::{
    ConstraintSynthesizer as _, ConstraintSystem, Matrix, R1CS_PREDICATE_LABEL, SynthesisMode,
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use rand_chacha_03::{ChaCha20Rng, rand_core::SeedableRng as _};

const SEED: [u8; 32] = [7; 32];
const TASK: [u8; 32] = [0xab; 32];
const AGENT: [u8; 32] = [0xfe; 32];

/// Offsets in a proof.
const A: usize = 0;
const B: usize = 64;
const C: usize = 192;
const INPUT: usize = POINTS_BYTES + 4;

type Bytes = [u8; PROOF_BYTES];

fn witness(salt: u64) -> Witness {
    Witness { output: [1, 2, 3, 4].map(Element::from), salt: salt.into() }
}

fn prover() -> Prover {
    Prover::new(ProvingKey::setup(&SEED))
}

/// A prover, and one of its proofs with the statement.
fn proof() -> (Prover, Statement, Bytes) {
    let prover = prover();
    let proof = prover.prove(&TASK, &AGENT, &witness(5), &[9; 32]);
    (prover, proof.statement, proof.to_bytes())
}

/// The 32-byte number at `at` plus the modulus of its field; `None` if that is too large.
fn plus_modulus<F: ark_ff::PrimeField>(bytes: &Bytes, at: usize) -> Option<Bytes> {
    let mut number = num_bigint::BigUint::from_bytes_be(&bytes[at..at + 32]);
    number += num_bigint::BigUint::from_bytes_be(&F::MODULUS.to_bytes_be());
    let number = number.to_bytes_be();
    (number.len() <= 32).then(|| {
        let mut bytes = *bytes;
        bytes[at..at + 32].fill(0);
        bytes[at + 32 - number.len()..at + 32].copy_from_slice(&number);
        bytes
    })
}

fn with(bytes: &Bytes, at: usize, part: &[u8]) -> Bytes {
    let mut bytes = *bytes;
    bytes[at..at + part.len()].copy_from_slice(part);
    bytes
}

/// The circuit's matrices A, B and C, row by row.
fn matrices() -> Vec<Matrix<Fr>> {
    let cs = ConstraintSystem::new_ref();
    cs.set_mode(SynthesisMode::Setup);
    Circuit::blank().generate_constraints(cs.clone()).expect("a setup asks for no values");
    cs.finalize();
    cs.to_matrices().expect("matrices").remove(R1CS_PREDICATE_LABEL).expect("rank-one constraints")
}

fn written(point: &impl Point) -> Vec<u8> {
    let mut bytes = Vec::new();
    point.write(&mut bytes);
    bytes
}

#[test]
fn identifiers_are_read_big_endian_and_reduced() {
    let mut three = [0; 32];
    three[31] = 3;
    assert_eq!(Element::reduce(&three), Element::from(3));
    let modulus: [u8; 32] = Fr::MODULUS.to_bytes_be().try_into().expect("32 bytes");
    assert_eq!(Element::reduce(&modulus), Element::from(0));
    assert_eq!(Element::from_bytes(&modulus), None);
    let mut below = modulus;
    below[31] -= 1;
    let largest = Element::from_bytes(&below).expect("below the modulus");
    assert_eq!(largest.to_bytes(), below);
    assert_eq!(from_slice(&to_vec(&largest)), Ok(largest));
    assert!(matches!(from_slice::<Element>(&to_vec(&modulus)), Err(DecodeError::Invalid(_))));
}

#[test]
fn the_circuit_has_the_size_that_keys_are_made_for() {
    let cs = ConstraintSystem::new_ref();
    let statement = Statement::of(&TASK, &AGENT, &witness(5));
    Circuit::of(&statement, &witness(5)).generate_constraints(cs.clone()).unwrap();
    assert_eq!(cs.num_constraints(), CONSTRAINTS);
    assert_eq!(cs.num_instance_variables(), 1 + INPUTS);
    assert_eq!(cs.num_witness_variables(), WITNESSES);
    assert_eq!(CONSTRAINTS, 1_058);
}

#[test]
fn no_variable_can_have_another_value() {
    let (statement, witness) = (Statement::of(&TASK, &AGENT, &witness(5)), witness(5));
    let (columns, factors) = CircuitValues::of(&statement, &witness).into_parts();
    let matrices = matrices();
    let row = |row: &[(Fr, usize)], columns: &[Fr]| -> Fr {
        row.iter().map(|(factor, column)| *factor * columns[*column]).sum()
    };
    let satisfied = |columns: &[Fr]| {
        let rows = matrices[0].iter().zip(&matrices[1]).zip(&matrices[2]);
        rows.into_iter().all(|((a, b), c)| row(a, columns) * row(b, columns) == row(c, columns))
    };
    assert!(satisfied(&columns));
    for (matrix, factors) in matrices.iter().zip([&factors.left, &factors.right]) {
        let rows: Vec<_> = matrix.iter().map(|entries| row(entries, &columns)).collect();
        assert_eq!(rows, factors[..CONSTRAINTS]);
    }
    assert_eq!(factors.left[CONSTRAINTS..], columns[..=INPUTS]);
    assert_eq!(factors.right.len(), CONSTRAINTS);
    for column in 0..columns.len() {
        let mut columns = columns.clone();
        columns[column] += Fr::from(1);
        assert!(!satisfied(&columns), "column {column} is free");
    }
}

#[test]
fn a_proof_holds_for_its_statement_alone() {
    let (prover, statement, bytes) = proof();
    let key = prover.key().verifying_key();
    assert_eq!(statement, Statement::of(&TASK, &AGENT, &witness(5)));
    assert_eq!(key.verify(&statement, &bytes), Ok(()));
    assert_eq!(Proof::from_bytes(&bytes).map(|proof| proof.to_bytes()), Ok(bytes));

    let other_output = Witness { output: [1, 2, 3, 5].map(Element::from), ..witness(5) };
    let others = [
        ("task_id", Statement::of(&AGENT, &AGENT, &witness(5))),
        ("agent", Statement::of(&TASK, &TASK, &witness(5))),
        ("constraint_hash", Statement::of(&TASK, &AGENT, &other_output)),
        ("output_commitment", Statement::of(&TASK, &AGENT, &witness(6))),
    ];
    for (name, other) in others {
        let refused = key.verify(&other, &bytes);
        assert!(
            matches!(refused, Err(ProofError::OtherStatement { input, .. }) if input == name),
            "{name}: {refused:?}"
        );
        // The same proof with its inputs replaced.
        let forged = mock::prove(&SEED, &other);
        let forged = with(&bytes, POINTS_BYTES, &forged[POINTS_BYTES..]);
        assert_eq!(key.verify(&other, &forged), Err(ProofError::Invalid), "{name}");
    }
    let other_key = ProvingKey::setup(&[8; 32]);
    let refused = other_key.verifying_key().verify(&statement, &bytes);
    assert_eq!(refused, Err(ProofError::Invalid));
}

#[test]
fn no_bit_of_a_proof_can_change() {
    let (prover, statement, bytes) = proof();
    let key = prover.key().verifying_key();
    for bit in 0..8 * PROOF_BYTES {
        let mut bytes = bytes;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(key.verify(&statement, &bytes).is_err(), "bit {bit}");
        // Nor does it hold for the changed statement that it carries; one bit of each byte.
        if bit / 8 >= INPUT
            && bit % 8 == bit / 8 % 8
            && let Ok(other) = Proof::from_bytes(&bytes)
        {
            assert_eq!(key.verify(&other.statement, &bytes), Err(ProofError::Invalid), "bit {bit}");
        }
    }
}

#[test]
fn a_proof_has_one_form() {
    let (prover, statement, bytes) = proof();
    let key = prover.key().verifying_key();
    let check = |bytes: &[u8], expected: FormatError| {
        assert_eq!(Proof::from_bytes(bytes), Err(expected));
        assert_eq!(key.verify(&statement, bytes), Err(ProofError::Format(expected)));
    };
    for got in [0, 1, 256, PROOF_BYTES - 1] {
        check(&bytes[..got], FormatError::Length { got });
    }
    let got = PROOF_BYTES + 1;
    check(&[&bytes[..], &[0]].concat(), FormatError::Length { got });
    for got in [0, 3, 5, 0x0400_0000, u32::MAX] {
        check(&with(&bytes, POINTS_BYTES, &got.to_be_bytes()), FormatError::Count { got });
    }
    for (i, input) in INPUT_NAMES.into_iter().enumerate() {
        let at = INPUT + 32 * i;
        let changed = plus_modulus::<Fr>(&bytes, at).expect("five moduli fit 256 bits");
        check(&changed, FormatError::Input { input });
        check(&with(&bytes, at, &[0xff; 32]), FormatError::Input { input });
    }
    for (point, at, length) in [("A", A, 64), ("B", B, 128), ("C", C, 64)] {
        let refused = |why| FormatError::Point { point, why };
        check(&with(&bytes, at, &vec![0; length]), refused(PointError::Infinity));
        for coordinate in (at..at + length).step_by(32) {
            // Bits that other formats use as flags: the sign, infinity, compression.
            for flag in [0x80, 0x40, 0xc0] {
                let flagged = with(&bytes, coordinate, &[bytes[coordinate] | flag]);
                check(&flagged, refused(PointError::Coordinate));
            }
            let changed = plus_modulus::<Fq>(&bytes, coordinate).expect("five moduli fit 256 bits");
            check(&changed, refused(PointError::Coordinate));
            let mut off = bytes;
            off[coordinate + 31] ^= 1;
            check(&off, refused(PointError::OffCurve));
        }
    }
}

#[test]
fn points_outside_of_their_group_are_refused() {
    let (prover, statement, bytes) = proof();
    let outside = (1..1_000)
        .filter_map(|x: u64| G2Affine::get_point_from_x_unchecked(Fq2::from(x), true))
        .find(|point| !point.is_in_correct_subgroup_assuming_on_curve())
        .expect("nearly all points of the curve are outside of the group");
    let bytes = with(&bytes, B, &written(&outside));
    let expected = FormatError::Point { point: "B", why: PointError::Subgroup };
    let verdict = prover.key().verifying_key().verify(&statement, &bytes);
    assert_eq!(verdict, Err(ProofError::Format(expected)));
}

#[test]
fn other_points_of_the_groups_do_not_hold() {
    let (prover, statement, bytes) = proof();
    let key = prover.key().verifying_key();
    let Proof { a, b, c, .. } = Proof::from_bytes(&bytes).expect("a proof");
    let negated = [(A, written(&-a)), (B, written(&-b)), (C, written(&-c))];
    let generators = [
        (A, written(&G1Affine::generator())),
        (B, written(&G2Affine::generator())),
        (C, written(&G1Affine::generator())),
    ];
    for (at, point) in negated.into_iter().chain(generators).chain([(A, written(&c))]) {
        let verdict = key.verify(&statement, &with(&bytes, at, &point));
        assert_eq!(verdict, Err(ProofError::Invalid), "at {at}");
    }
}

/// Provers and verifiers of arkworks and ours accept one another's keys and proofs.
#[test]
fn it_is_the_same_groth16_as_that_of_arkworks() {
    let (prover, statement, bytes) = proof();
    let key = prover.key().verifying_key();
    let prepared = ark_groth16::prepare_verifying_key(key.arkworks());
    let inputs = statement.inputs().map(|input| input.0);
    let Proof { a, b, c, .. } = Proof::from_bytes(&bytes).expect("a proof");
    let ours = ark_groth16::Proof { a, b, c };
    assert_eq!(Groth16::<Bn254>::verify_proof(&prepared, &ours, &inputs), Ok(true));

    let mut random = ChaCha20Rng::from_seed(SEED);
    let circuit = Circuit::of(&statement, &witness(5));
    let proof = Groth16::<Bn254, Reduction>::create_random_proof_with_reduction(
        circuit,
        prover.key().arkworks(),
        &mut random,
    );
    let ark_groth16::Proof { a, b, c } = proof.expect("a proof");
    let theirs = Proof { a, b, c, statement };
    assert_eq!(key.verify(&statement, &theirs.to_bytes()), Ok(()));
}

#[test]
fn the_same_arguments_give_the_same_proof_and_others_another() {
    let prover = prover();
    let key = prover.key().verifying_key();
    let prove = |salt, seed| prover.prove(&TASK, &AGENT, &witness(salt), &[seed; 32]);
    let first = prove(5, 1);
    assert_eq!(first, prove(5, 1));
    let second = prove(5, 2);
    assert_eq!(first.statement, second.statement);
    assert!(first.a != second.a && first.b != second.b && first.c != second.c);
    for proof in [&second, &prove(6, 1)] {
        assert_eq!(key.verify(&proof.statement, &proof.to_bytes()), Ok(()));
    }
}

#[test]
fn keys_follow_from_the_seed() {
    let key = ProvingKey::setup(&SEED);
    assert_eq!(key, ProvingKey::setup(&SEED));
    assert_ne!(key.verifying_key(), ProvingKey::setup(&[8; 32]).verifying_key());
    // Frozen: a devnet's genesis names this key.
    assert_eq!(
        key.verifying_key().id().to_string(),
        "0xb2c07daf358335c41010c2ffcd13b12971a740da51582d9a28ee778f232c8532"
    );
    let proving = keccak256(&[&key.to_bytes()]).to_string();
    assert_eq!(proving, "0x4c46f31e395a9a75311db7bc49869d77793a8e0a170096d66b24878a2bff113e");
}

#[test]
fn a_batch_has_the_verdict_of_each() {
    let prover = prover();
    let key = prover.key().verifying_key();
    let proofs: Vec<_> = (0..6u8)
        .map(|n| {
            let proof = prover.prove(&[n; 32], &AGENT, &witness(n.into()), &[n; 32]);
            (proof.statement, proof.to_bytes())
        })
        .collect();
    let check = |proofs: &[(Statement, Bytes)], bad: &[usize]| {
        let batch: Vec<_> =
            proofs.iter().map(|(statement, bytes)| (*statement, &bytes[..])).collect();
        let verdicts = key.verify_batch(&batch);
        assert_eq!(verdicts.len(), proofs.len());
        for (i, (verdict, (statement, bytes))) in verdicts.iter().zip(&batch).enumerate() {
            assert_eq!(*verdict, key.verify(statement, bytes));
            assert_eq!(verdict.is_err(), bad.contains(&i), "{i}");
        }
    };
    for count in 0..=proofs.len() {
        check(&proofs[..count], &[]);
    }
    // One that does not hold, alone and among others.
    let mut one = proofs.clone();
    one[4].1 = with(&proofs[4].1, A, &proofs[3].1[..64]);
    check(&one, &[4]);
    check(&one[4..5], &[0]);
    // A malformed one leaves the others to be checked together.
    let mut malformed = proofs.clone();
    malformed[0].1[0] ^= 1;
    check(&malformed, &[0]);
    check(&malformed[..1], &[0]);
    // Two proofs whose faults would cancel if they shared a power: C moved by the same, both ways.
    let mut cancelling = proofs.clone();
    let c = |n: usize| Proof::from_bytes(&proofs[n].1).expect("a proof").c;
    let shift = G1Affine::generator();
    cancelling[1].1 = with(&proofs[1].1, C, &written(&G1Affine::from(c(1) + shift)));
    cancelling[2].1 = with(&proofs[2].1, C, &written(&G1Affine::from(c(2) - shift)));
    check(&cancelling, &[1, 2]);
    // The same proof is valid twice, but not for another statement.
    check(&[proofs[0], proofs[0]], &[]);
    check(&[proofs[0], (proofs[1].0, proofs[0].1)], &[1]);
}

#[test]
fn keys_are_written_and_read() {
    let key = ProvingKey::setup(&SEED);
    let bytes = key.to_bytes();
    assert_eq!(bytes.len(), PROVING_KEY_BYTES);
    assert_eq!(key.verifying_key().to_bytes(), bytes[..VERIFYING_KEY_BYTES]);
    assert_eq!(from_slice(&to_vec(key.verifying_key())), Ok(key.verifying_key().clone()));
    let read: ProvingKey = from_slice(&to_vec(&key)).expect("a key");
    assert!(read == key);
    let proof = Prover::new(read).prove(&TASK, &AGENT, &witness(5), &[9; 32]);
    let verdict = key.verifying_key().verify(&proof.statement, &proof.to_bytes());
    assert_eq!(verdict, Ok(()));
}

#[test]
fn what_is_no_key_is_refused() {
    let key = ProvingKey::setup(&SEED);
    let verifying: [u8; VERIFYING_KEY_BYTES] =
        key.verifying_key().to_bytes().try_into().expect("a key's bytes");
    let check = |at: usize, part: &[u8], expected: PointError| {
        let mut bytes = verifying;
        bytes[at..at + part.len()].copy_from_slice(part);
        assert_eq!(VerifyingKey::from_bytes(&bytes), Err(expected), "at {at}");
    };
    for at in [0, 448, 704] {
        check(at, &[0; 64], PointError::Infinity);
        check(at + 63, &[verifying[at + 63] ^ 1], PointError::OffCurve);
        check(at, &[0xff], PointError::Coordinate);
    }
    for at in [64, 192, 320] {
        check(at, &[0; 128], PointError::Infinity);
    }
    let wrong = |bytes: &[u8]| from_slice::<VerifyingKey>(&to_vec(&bytes.to_vec())).unwrap_err();
    assert!(matches!(wrong(&verifying[1..]), DecodeError::WrongLength { .. }));
    assert!(matches!(wrong(&[0xff; VERIFYING_KEY_BYTES]), DecodeError::Invalid(_)));

    let proving = key.to_bytes();
    let wrong = |bytes: &[u8]| from_slice::<ProvingKey>(&to_vec(&bytes.to_vec())).unwrap_err();
    assert!(matches!(wrong(&proving[1..]), DecodeError::WrongLength { .. }));
    let long = [&proving[..], &[0]].concat();
    assert!(matches!(wrong(&long), DecodeError::TooLong { .. }));
    for at in [0, VERIFYING_KEY_BYTES, VERIFYING_KEY_BYTES + 64 + 63, PROVING_KEY_BYTES - 1] {
        let mut bytes = proving.clone();
        bytes[at] ^= 1;
        assert!(matches!(wrong(&bytes), DecodeError::Invalid(_)), "at {at}");
    }
}

#[test]
fn bytes_from_outside_never_panic() {
    let (prover, statement, bytes) = proof();
    let key = prover.key().verifying_key();
    let mut runner = TestRunner::new(Config { cases: 256, ..Config::default() });
    let strategy = (prop::collection::vec(any::<u8>(), 0..400), 0..PROOF_BYTES, 1..64usize);
    let checked = runner.run(&strategy, |(noise, at, length)| {
        prop_assert!(key.verify(&statement, &noise).is_err());
        let mut changed = bytes;
        let end = (at + length).min(PROOF_BYTES);
        let noise = noise.into_iter().chain(std::iter::repeat(0));
        changed[at..end].iter_mut().zip(noise).for_each(|(byte, noise)| *byte = noise);
        if let Ok(proof) = Proof::from_bytes(&changed) {
            prop_assert_eq!(proof.to_bytes(), changed);
        }
        prop_assert_eq!(key.verify(&statement, &changed).is_ok(), changed == bytes);
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn a_mock_has_the_shape_of_a_proof_and_is_none() {
    let statement = Statement::of(&TASK, &AGENT, &witness(5));
    let bytes = mock::prove(&SEED, &statement);
    assert_eq!(mock::verify(&SEED, &statement, &bytes), Ok(()));
    for bit in 0..8 * PROOF_BYTES {
        let mut bytes = bytes;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(mock::verify(&SEED, &statement, &bytes), Err(ProofError::Invalid));
    }
    let other = Statement::of(&TASK, &AGENT, &witness(6));
    assert_eq!(mock::verify(&SEED, &other, &bytes), Err(ProofError::Invalid));
    assert_eq!(mock::verify(&[8; 32], &statement, &bytes), Err(ProofError::Invalid));
    let short = mock::verify(&SEED, &statement, &bytes[1..]);
    assert_eq!(short, Err(FormatError::Length { got: PROOF_BYTES - 1 }.into()));
    // Neither generator accepts the other's proofs.
    assert!(matches!(Proof::from_bytes(&bytes), Err(FormatError::Point { .. })));
    let (prover, statement, bytes) = proof();
    assert!(mock::verify(&SEED, &statement, &bytes).is_err());
    let mock = mock::prove(&SEED, &statement);
    assert!(prover.key().verifying_key().verify(&statement, &mock).is_err());
}

#[test]
fn what_hides_stays_hidden() {
    let prover = prover();
    assert_eq!(format!("{:?}", witness(123_456_789)), "Witness(..)");
    let id = prover.key().verifying_key().id();
    assert_eq!(format!("{:?}", prover.key()), format!("ProvingKey({id})"));
}

#[test]
fn equal_outputs_are_linkable_by_their_hash_and_not_by_their_commitment() {
    let (one, other) = (witness(1), witness(2));
    assert_eq!(one.output, other.output);
    assert_eq!(one.constraint_hash(), other.constraint_hash());
    assert_ne!(one.output_commitment(), other.output_commitment());
}

//! Checks of proofs: one by one, or all of a block's at once.
//!
//! A proof (A, B, C) of public inputs x holds if e(A, B) = e(α, β) · e(IC(x), γ) · e(C, δ), where
//! IC(x) is the sum of the verifying key's points, each times its input.
//!
//! For n proofs at once, each equation is raised to its own power and all are multiplied:
//!
//! ∏ e(rᵢ·Aᵢ, Bᵢ) = e(α, β)^Σrᵢ · e(Σ rᵢ·IC(xᵢ), γ) · e(Σ rᵢ·Cᵢ, δ)
//!
//! Each proof still takes one pairing, but without its costly end, which all of them share. The
//! powers rᵢ, of 128 bits each, are hashes of all proofs of the batch: every validator has the same
//! powers, and a prover cannot know them before the proof is made, nor choose a proof that cancels
//! another's fault.

use super::keys::VerifyingKey;
use crate::{
    primitives::keccak256,
    proof::{
        format::{FormatError, INPUT_NAMES, Proof},
        statement::{Element, INPUTS, Statement},
    },
};
use ark_bn254::{Bn254, Fr, G1Affine, G1Projective, g1};
use ark_ec::{
    AdditiveGroup as _, CurveGroup as _, VariableBaseMSM as _,
    pairing::{Pairing, PairingOutput},
    scalar_mul::glv::GLVConfig as _,
};
use ark_ff::Field as _;
use std::iter::once;

/// Separates a batch's powers from all other hashes.
const BATCH_DOMAIN: &[u8] = b"cowboy/proof/batch/v1";

/// The reason why a proof is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    #[error("malformed proof: {0}")]
    Format(#[from] FormatError),
    #[error("a proof of another statement: its {input} is {got}, here it is {expected}")]
    OtherStatement {
        /// The first public input that differs.
        input: &'static str,
        got: Element,
        expected: Element,
    },
    #[error("the proof does not hold")]
    Invalid,
}

impl VerifyingKey {
    pub fn verify(&self, statement: &Statement, bytes: &[u8]) -> Result<(), ProofError> {
        let proof = read(statement, bytes)?;
        if self.holds(&proof) { Ok(()) } else { Err(ProofError::Invalid) }
    }

    /// Checks a block's proofs, each for its statement: the verdicts of [`Self::verify`] on each,
    /// at a quarter of the cost if all hold. If one does not, each is checked by itself.
    pub fn verify_batch(&self, batch: &[(Statement, &[u8])]) -> Vec<Result<(), ProofError>> {
        let read: Vec<_> = batch.iter().map(|(statement, bytes)| read(statement, bytes)).collect();
        let proofs: Vec<_> = read.iter().flatten().collect();
        let all = proofs.len() > 1 && self.all_hold(&proofs);
        let verdict = |proof: Result<Proof, ProofError>| {
            let proof = proof?;
            if all || self.holds(&proof) { Ok(()) } else { Err(ProofError::Invalid) }
        };
        read.into_iter().map(verdict).collect()
    }

    fn holds(&self, proof: &Proof) -> bool {
        let inputs = proof.statement.inputs().map(|input| input.0);
        let sums = [self.combine(Fr::ONE, inputs).into_affine(), proof.c];
        let left = once((proof.a, proof.b.into()));
        self.paired(left, sums).is_some_and(|product| product == self.0.alpha_beta)
    }

    /// Whether all proofs hold. If some do not, the chance of a wrong answer is 2⁻¹²⁸.
    fn all_hold(&self, proofs: &[&Proof]) -> bool {
        let powers = powers(proofs);
        let scaled = proofs.iter().zip(&powers).map(|(proof, power)| power.times(proof.a));
        let scaled = G1Projective::normalize_batch(&scaled.collect::<Vec<_>>());
        // Numbers of 64 bits, for twice as many points.
        let turned = |proof: &&Proof| g1::Config::endomorphism_affine(&proof.c);
        let points = proofs.iter().map(|proof| proof.c).chain(proofs.iter().map(turned));
        let halves = powers.iter().map(|power| power.low).chain(powers.iter().map(|p| p.high));
        let (points, halves): (Vec<G1Affine>, Vec<u64>) = points.zip(halves).unzip();
        let outputs = G1Projective::msm_u64(&points, &halves);
        let powers: Vec<Fr> = powers.iter().map(Power::number).collect();
        let left = scaled.into_iter().zip(proofs).map(|(a, proof)| (a, proof.b.into()));

        let mut inputs = [Fr::from(0); INPUTS];
        for (proof, power) in proofs.iter().zip(&powers) {
            for (sum, input) in inputs.iter_mut().zip(proof.statement.inputs()) {
                *sum += input.0 * power;
            }
        }
        let all: Fr = powers.iter().sum();
        let sums = [self.combine(all, inputs), outputs];
        let product = self.paired(left, sums.map(|sum| sum.into_affine()));
        product.is_some_and(|product| product == self.0.alpha_beta * all)
    }

    /// The product of the pairings on the left, of the first sum with −γ and of the second with −δ;
    /// `None` if a factor is zero, which no pairing is.
    fn paired(
        &self,
        left: impl Iterator<Item = (G1Affine, <Bn254 as Pairing>::G2Prepared)>,
        [inputs, c]: [G1Affine; 2],
    ) -> Option<PairingOutput<Bn254>> {
        let right = [(inputs, self.0.minus_gamma.clone()), (c, self.0.minus_delta.clone())];
        let (points, others): (Vec<_>, Vec<_>) = left.chain(right).unzip();
        Bn254::final_exponentiation(Bn254::multi_miller_loop(points, others))
    }
}

/// Reads a proof of this statement, whether it holds or not.
fn read(statement: &Statement, bytes: &[u8]) -> Result<Proof, ProofError> {
    let proof = Proof::from_bytes(bytes)?;
    proof.statement.expect(statement)?;
    Ok(proof)
}

impl Statement {
    /// Checks that it equals `expected`; the error names the first public input that differs.
    pub fn expect(&self, expected: &Self) -> Result<(), ProofError> {
        let inputs = self.inputs().into_iter().zip(expected.inputs());
        for ((got, expected), input) in inputs.zip(INPUT_NAMES) {
            if got != expected {
                return Err(ProofError::OtherStatement { input, got, expected });
            }
        }
        Ok(())
    }
}

/// The power of an equation in a batch: low + λ · high, where multiplying a point of G1 by λ takes
/// one multiplication. No two pairs of 64 bits give the same number.
struct Power {
    low: u64,
    high: u64,
}

impl Power {
    fn number(&self) -> Fr {
        Fr::from(self.low) + g1::Config::LAMBDA * Fr::from(self.high)
    }

    /// The point times the number, in half as many steps as the number has bits.
    fn times(&self, point: G1Affine) -> G1Projective {
        let turned = g1::Config::endomorphism_affine(&point);
        let mut product = G1Projective::ZERO;
        for bit in (0..u64::BITS).rev() {
            product.double_in_place();
            if self.low >> bit & 1 == 1 {
                product += point;
            }
            if self.high >> bit & 1 == 1 {
                product += turned;
            }
        }
        product
    }
}

/// A power for each proof, which depends on all proofs.
fn powers(proofs: &[&Proof]) -> Vec<Power> {
    let bytes: Vec<_> = proofs.iter().map(|proof| proof.to_bytes()).collect();
    let mut parts = vec![BATCH_DOMAIN];
    parts.extend(bytes.iter().map(<[u8; _]>::as_slice));
    let seed = keccak256(&parts);
    let power = |i: usize| {
        let hash = keccak256(&[BATCH_DOMAIN, &seed.0, &(i as u64).to_be_bytes()]);
        let [low, high, ..] = hash.0.as_chunks().0 else { unreachable!("32 bytes are four limbs") };
        Power { low: u64::from_be_bytes(*low), high: u64::from_be_bytes(*high) }
    };
    (0..proofs.len()).map(power).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ec::AffineRepr as _;

    #[test]
    fn a_point_times_a_power_is_the_point_times_its_number() {
        for (low, high) in [(0, 0), (1, 0), (0, 1), (u64::MAX, u64::MAX), (1 << 63, 12_345)] {
            let power = Power { low, high };
            for point in [G1Affine::generator(), (G1Affine::generator() * Fr::from(77)).into()] {
                assert_eq!(power.times(point), point * power.number());
            }
        }
    }
}

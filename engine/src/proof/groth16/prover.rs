//! From a witness to a proof.
//!
//! For values z of all variables and the coefficients h of the quotient polynomial, a proof is
//!
//! * A = α + Σ zᵢ·Aᵢ + r·δ,
//! * B = β + Σ zᵢ·Bᵢ + s·δ, in G2,
//! * C = Σ zᵢ·Lᵢ + Σ hᵢ·Hᵢ + s·A + r·B′ − r·s·δ, where B′ is B in G1.
//!
//! B′ is used for nothing else, so its points join the sum for C. Its term s·δ, times r, is
//! subtracted again at the end.

use super::{keys::ProvingKey, quotient::Quotients, sums::Multiples};
use crate::{
    primitives::{codec::to_vec, keccak256},
    proof::{
        circuit::CircuitValues,
        format::Proof,
        statement::{Element, INPUTS, Statement, Witness},
    },
};
use ark_bn254::{Fr, g1, g2};
use ark_ec::CurveGroup as _;
use ark_ff::PrimeField as _;

/// Separates a proof's numbers from others drawn from the same seed.
const BLINDING_DOMAIN: &[u8] = b"cowboy/proof/blinding/v1";

/// A proving key, and the part of its work that is the same for all proofs: some 8 MB.
pub struct Prover {
    pub(super) key: ProvingKey,
    pub(super) quotients: Quotients,
    /// A's points, then δ.
    pub(super) a: Multiples<g1::Config>,
    /// B's points, then δ.
    pub(super) b: Multiples<g2::Config>,
    /// The points of B′, those of the private variables, those of the quotient, then β.
    pub(super) c: Multiples<g1::Config>,
}

impl Prover {
    /// Does the work that all proofs with `key` share.
    pub fn new(key: ProvingKey) -> Self {
        let points = &key.key;
        let c = [&points.b_g1_query, &points.l_query, &points.h_query].into_iter().flatten();
        Self {
            quotients: Quotients::new(),
            a: Multiples::of(points.a_query.iter().chain([&points.delta_g1]).copied()),
            b: Multiples::of(points.b_g2_query.iter().chain([&points.vk.delta_g2]).copied()),
            c: Multiples::of(c.chain([&points.beta_g1]).copied()),
            key,
        }
    }

    pub fn key(&self) -> &ProvingKey {
        &self.key
    }

    /// Proves the statement that the witness yields for this task and this agent.
    ///
    /// The numbers that hide the witness are drawn from `seed`, which must be secret, together with
    /// everything that is proved. A seed used twice reveals nothing about either witness, and the
    /// same arguments give the same proof.
    pub fn prove(
        &self,
        task_id: &[u8; 32],
        agent: &[u8; 32],
        witness: &Witness,
        seed: &[u8; 32],
    ) -> Proof {
        let statement = Statement::of(task_id, agent, witness);
        let [r, s] = blinding(&statement, witness, seed);
        self.prove_with(statement, witness, r, s)
    }

    fn prove_with(&self, statement: Statement, witness: &Witness, r: Fr, s: Fr) -> Proof {
        let (values, factors) = CircuitValues::of(&statement, witness).into_parts();

        let for_a: Vec<_> = values.iter().copied().chain([r]).collect();
        let a = self.a.sum(&for_a) + self.key.key.vk.alpha_g1;
        let for_b: Vec<_> = values.iter().copied().chain([s]).collect();
        let b = self.b.sum(&for_b) + self.key.key.vk.beta_g2;

        let mut for_c: Vec<_> = values.iter().map(|value| r * value).collect();
        for_c.extend(&values[1 + INPUTS..]);
        for_c.extend(self.quotients.of(factors));
        for_c.push(r);
        let c = self.c.sum(&for_c) + a * s;
        Proof { a: a.into_affine(), b: b.into_affine(), c: c.into_affine(), statement }
    }
}

fn blinding(statement: &Statement, witness: &Witness, seed: &[u8; 32]) -> [Fr; 2] {
    let secret = witness.output.into_iter().chain([witness.salt]).flat_map(Element::to_bytes);
    let (secret, statement) = (secret.collect::<Vec<_>>(), to_vec(statement));
    [0, 2].map(|first| {
        let hash = |part: u8| keccak256(&[BLINDING_DOMAIN, seed, &statement, &secret, &[part]]).0;
        // 512 bits, so that the reduced number is not biased.
        Fr::from_be_bytes_mod_order(&[hash(first), hash(first + 1)].concat())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::{circuit::Circuit, groth16::Reduction};
    use ark_bn254::Bn254;
    use ark_groth16::Groth16;

    #[test]
    fn proofs_are_those_of_arkworks_point_by_point() {
        let prover = Prover::new(ProvingKey::setup(&[1; 32]));
        let witness = Witness { output: [5, 6, 7, 8].map(Element::from), salt: Element::from(9) };
        let statement = Statement::of(&[2; 32], &[3; 32], &witness);
        for [r, s] in [[0, 0], [0, 1], [1, 0], [u64::MAX, 17]] {
            let [r, s] = [-Fr::from(r), Fr::from(s)];
            let ours = prover.prove_with(statement, &witness, r, s);
            let theirs = Groth16::<Bn254, Reduction>::create_proof_with_reduction(
                Circuit::of(&statement, &witness),
                &prover.key.key,
                r,
                s,
            );
            let ark_groth16::Proof { a, b, c } = theirs.expect("a proof");
            assert_eq!(ours, Proof { a, b, c, statement });
        }
    }
}

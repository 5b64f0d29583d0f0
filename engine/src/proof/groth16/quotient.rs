//! The quotient polynomial; a proof shows that it exists.
//!
//! Over a domain of n points, one for each constraint and each instance column, a and b are the
//! polynomials of degree below n that take the values of the constraints' left and right factors,
//! and c takes the values of their products. The quotient is h = (a·b − c) / (Xⁿ − 1).
//!
//! A key has a point for each coefficient of h, and a proof has to multiply each of them. So n is
//! 2⁷·3², for which the field has roots of unity too: the next power of two after 1,063 rows is
//! 2,048.
//!
//! On the domain shifted by g, where Xⁿ is gⁿ, a·b takes the values of (gⁿ − 1)·h + c. That and c
//! are polynomials of degree below n, so h follows from both without c's values there.

use crate::proof::{
    circuit::{CONSTRAINTS, Factors},
    statement::INPUTS,
};
use ark_bn254::Fr;
use ark_ff::{AdditiveGroup as _, FftField as _, Field as _, PrimeField};
use ark_groth16::r1cs_to_qap::{LibsnarkReduction, R1CSToQAP};
use ark_poly::{EvaluationDomain, MixedRadixEvaluationDomain};
use ark_relations::gr1cs::{self, ConstraintSystemRef, Matrix};
use std::iter::successors;

/// Points of the domain.
pub(super) const DOMAIN: usize = 1_152;
/// Coefficients of the quotient.
pub(super) const COEFFICIENTS: usize = DOMAIN - 1;
const _: () = assert!(DOMAIN >= CONSTRAINTS + 1 + INPUTS, "each row has its point");

/// At one point: the three polynomials of each column, and Xⁿ − 1; the number of columns except the
/// first; n.
type InstanceMap<F> = (Vec<F>, Vec<F>, Vec<F>, F, usize, usize);

/// The reduction of constraints to polynomials for which keys are made: libsnark's, as in arkworks,
/// over the domain of this module. arkworks's setup and prover take it as an argument and ignore
/// the domain that they would have chosen.
pub struct Reduction;

impl R1CSToQAP for Reduction {
    fn instance_map_with_evaluation<F: PrimeField, D: EvaluationDomain<F>>(
        cs: ConstraintSystemRef<F>,
        t: &F,
    ) -> gr1cs::Result<InstanceMap<F>> {
        LibsnarkReduction::instance_map_with_evaluation::<F, MixedRadixEvaluationDomain<F>>(cs, t)
    }

    fn witness_map_from_matrices<F: PrimeField, D: EvaluationDomain<F>>(
        matrices: &[Matrix<F>],
        inputs: usize,
        constraints: usize,
        values: &[F],
    ) -> gr1cs::Result<Vec<F>> {
        LibsnarkReduction::witness_map_from_matrices::<F, MixedRadixEvaluationDomain<F>>(
            matrices,
            inputs,
            constraints,
            values,
        )
    }

    fn h_query_scalars<F: PrimeField, D: EvaluationDomain<F>>(
        max_power: usize,
        t: F,
        zt: F,
        delta_inverse: F,
    ) -> gr1cs::Result<Vec<F>> {
        LibsnarkReduction::h_query_scalars::<F, D>(max_power, t, zt, delta_inverse)
    }
}

/// The numbers that all quotients share.
pub(super) struct Quotients {
    /// The domain: the powers of a root of unity.
    roots: Vec<Fr>,
    /// The powers of its inverse.
    inverse_roots: Vec<Fr>,
    /// gⁱ / n: the factors from a sum over the inverse roots to the domain shifted by g.
    there: Vec<Fr>,
    /// 1 / (gⁱ·n·(gⁿ − 1)): the factors back from there, which also divide.
    back: Vec<Fr>,
}

impl Quotients {
    pub(super) fn new() -> Self {
        let powers = |first: Fr, factor: Fr| -> Vec<Fr> {
            successors(Some(first), |power| Some(factor * power)).take(DOMAIN).collect()
        };
        let inverse = |number: Fr| number.inverse().expect("a power of g is one for no n so small");
        let root =
            Fr::get_root_of_unity(DOMAIN as u64).expect("n divides the field's order less 1");
        let (g, n) = (Fr::GENERATOR, Fr::from(DOMAIN as u64));
        let divisor = g.pow([DOMAIN as u64]) - Fr::ONE;
        Self {
            roots: powers(Fr::ONE, root),
            inverse_roots: powers(Fr::ONE, inverse(root)),
            there: powers(inverse(n), g),
            back: powers(inverse(n * divisor), inverse(g)),
        }
    }

    /// The quotient's coefficients, from the lowest.
    pub(super) fn of(&self, factors: Factors) -> Vec<Fr> {
        let Factors { mut left, mut right } = factors;
        left.resize(DOMAIN, Fr::ZERO);
        right.resize(DOMAIN, Fr::ZERO);
        let products = multiply(&left, &right);
        let [left, right] = [left, right].map(|values| {
            let coefficients = transform(&self.inverse_roots, &values);
            transform(&self.roots, &multiply(&coefficients, &self.there))
        });
        let moved = transform(&self.inverse_roots, &multiply(&left, &right));
        let products = transform(&self.inverse_roots, &products);
        let both = moved.iter().zip(&self.back).zip(&products).take(COEFFICIENTS);
        both.map(|((moved, back), product)| *moved * back - *product * self.back[0]).collect()
    }
}

fn multiply(a: &[Fr], b: &[Fr]) -> Vec<Fr> {
    a.iter().zip(b).map(|(a, b)| *a * b).collect()
}

/// The values of the polynomial with these coefficients at all of the roots, which are the powers
/// of one root, as many as there are coefficients.
fn transform(roots: &[Fr], coefficients: &[Fr]) -> Vec<Fr> {
    let mut values = vec![Fr::ZERO; roots.len()];
    transform_each(1, roots, coefficients, &mut values);
    values
}

/// The polynomial with each `step`-th of the coefficients, at each `step`-th of the roots.
///
/// It is p(X²) + X·q(X²), or the same with three polynomials, each with a half or a third of the
/// coefficients. Their values at as many roots give the values at all roots.
fn transform_each(step: usize, roots: &[Fr], coefficients: &[Fr], values: &mut [Fr]) {
    let length = values.len();
    if length == 1 {
        values[0] = coefficients[0];
    } else if length.is_multiple_of(3) {
        let part = length / 3;
        for (i, values) in values.chunks_exact_mut(part).enumerate() {
            transform_each(3 * step, roots, &coefficients[i * step..], values);
        }
        // The third root of unity ω has ω² = −1 − ω.
        let third = roots[part * step];
        let (p, rest) = values.split_at_mut(part);
        let (q, r) = rest.split_at_mut(part);
        for (i, ((p, q), r)) in p.iter_mut().zip(q).zip(r).enumerate() {
            let (one, two) = (roots[i * step] * *q, roots[2 * i * step] * *r);
            let turned = (one - two) * third;
            (*p, *q, *r) = (*p + one + two, *p - two + turned, *p - one - turned);
        }
    } else {
        let (p, q) = values.split_at_mut(length / 2);
        transform_each(2 * step, roots, coefficients, p);
        transform_each(2 * step, roots, &coefficients[step..], q);
        for (i, (p, q)) in p.iter_mut().zip(q).enumerate() {
            let product = if i == 0 { *q } else { roots[i * step] * *q };
            (*p, *q) = (*p + product, *p - product);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::UniformRand as _;
    use rand_chacha_03::{ChaCha20Rng, rand_core::SeedableRng as _};

    fn domain() -> MixedRadixEvaluationDomain<Fr> {
        let domain = MixedRadixEvaluationDomain::new(CONSTRAINTS + 1 + INPUTS);
        domain.expect("the field has roots of unity of order 2^a times 3^b")
    }

    #[test]
    fn the_domain_is_that_of_arkworks() {
        let (domain, quotients) = (domain(), Quotients::new());
        assert_eq!(domain.size(), DOMAIN);
        assert!(domain.elements().eq(quotients.roots.iter().copied()));

        let mut random = ChaCha20Rng::from_seed([1; 32]);
        let numbers: Vec<_> = (0..DOMAIN).map(|_| Fr::rand(&mut random)).collect();
        assert_eq!(transform(&quotients.roots, &numbers), domain.fft(&numbers));
    }

    #[test]
    fn a_quotient_times_what_vanishes_on_the_domain_is_what_it_is_the_quotient_of() {
        let mut random = ChaCha20Rng::from_seed([2; 32]);
        let mut numbers =
            |count: usize| -> Vec<_> { (0..count).map(|_| Fr::rand(&mut random)).collect() };
        let (left, right) = (numbers(CONSTRAINTS + 1 + INPUTS), numbers(CONSTRAINTS));
        let products = multiply(&left, &right);
        let quotient = Quotients::new().of(Factors { left: left.clone(), right: right.clone() });
        assert_eq!(quotient.len(), COEFFICIENTS);
        for x in numbers(3) {
            let lagrange = domain().evaluate_all_lagrange_coefficients(x);
            let at_x = |values: &[Fr]| -> Fr { multiply(values, &lagrange).iter().sum() };
            let [a, b, c] = [&left, &right, &products].map(|values| at_x(values));
            let h = quotient.iter().rfold(Fr::ZERO, |sum, coefficient| sum * x + coefficient);
            assert_eq!(a * b - c, h * (x.pow([DOMAIN as u64]) - Fr::ONE));
        }
    }
}

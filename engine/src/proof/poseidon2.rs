//! Poseidon2 over BN254's scalar field, width 4 (Grassi, Khovratovich, Schofnegger 2023).
//!
//! [`permute`] is generic over its arithmetic: field elements, field elements that record their
//! powers, or linear combinations of a circuit's variables. So the hash that the chain checks and
//! the hash that a proof is about cannot drift apart.

use super::constants::{
    EXTERNAL_CONSTANTS, EXTERNAL_MATRIX, HALF_FULL_ROUNDS, INTERNAL_CONSTANTS, INTERNAL_DIAGONAL,
    PARTIAL_ROUNDS, WIDTH,
};
use ark_bn254::Fr;
use ark_ff::{Field as _, One as _};
use std::convert::Infallible;

/// Fifth powers in one permutation.
pub(super) const POWERS: usize = 2 * HALF_FULL_ROUNDS * WIDTH + PARTIAL_ROUNDS;

pub(super) trait Arithmetic {
    /// A number; the default is zero.
    type Number: Clone + Default;
    type Error;

    /// The sum of `numbers`, each times its coefficient.
    fn combine(&self, coefficients: [Fr; WIDTH], numbers: &[Self::Number; WIDTH]) -> Self::Number;

    /// The fifth power of `number` + `constant`.
    fn fifth_power(
        &mut self,
        number: &Self::Number,
        constant: Fr,
    ) -> Result<Self::Number, Self::Error>;
}

pub(super) fn permute<A: Arithmetic>(
    arithmetic: &mut A,
    state: [A::Number; WIDTH],
) -> Result<[A::Number; WIDTH], A::Error> {
    let (first, last) = EXTERNAL_CONSTANTS.split_at(HALF_FULL_ROUNDS);
    let mut state = mix(arithmetic, &state);
    for constants in first {
        state = full_round(arithmetic, state, constants)?;
    }
    for constant in INTERNAL_CONSTANTS {
        state[0] = arithmetic.fifth_power(&state[0], constant)?;
        state = std::array::from_fn(|i| {
            let mut row = [Fr::ONE; WIDTH];
            row[i] += INTERNAL_DIAGONAL[i];
            arithmetic.combine(row, &state)
        });
    }
    for constants in last {
        state = full_round(arithmetic, state, constants)?;
    }
    Ok(state)
}

fn full_round<A: Arithmetic>(
    arithmetic: &mut A,
    mut state: [A::Number; WIDTH],
    constants: &[Fr; WIDTH],
) -> Result<[A::Number; WIDTH], A::Error> {
    for (number, constant) in state.iter_mut().zip(constants) {
        *number = arithmetic.fifth_power(number, *constant)?;
    }
    Ok(mix(arithmetic, &state))
}

/// The state times the external matrix.
fn mix<A: Arithmetic>(arithmetic: &A, state: &[A::Number; WIDTH]) -> [A::Number; WIDTH] {
    EXTERNAL_MATRIX.map(|row| arithmetic.combine(row.map(Fr::from), state))
}

/// The hash of four numbers: the first element of their permutation.
pub(super) fn hash_4<A: Arithmetic>(
    arithmetic: &mut A,
    numbers: [A::Number; WIDTH],
) -> Result<A::Number, A::Error> {
    permute(arithmetic, numbers).map(|[first, ..]| first)
}

/// The hash of two numbers: the hash of these and two zeros.
pub(super) fn hash_2<A: Arithmetic>(
    arithmetic: &mut A,
    a: A::Number,
    b: A::Number,
) -> Result<A::Number, A::Error> {
    hash_4(arithmetic, [a, b, A::Number::default(), A::Number::default()])
}

pub(super) struct Plain;

impl Arithmetic for Plain {
    type Number = Fr;
    type Error = Infallible;

    fn combine(&self, coefficients: [Fr; WIDTH], numbers: &[Fr; WIDTH]) -> Fr {
        sum(coefficients, numbers)
    }

    fn fifth_power(&mut self, number: &Fr, constant: Fr) -> Result<Fr, Infallible> {
        let base = *number + constant;
        Ok(base.square().square() * base)
    }
}

/// The sum of `numbers`, each times its coefficient, many of which are one.
pub(super) fn sum(coefficients: [Fr; WIDTH], numbers: &[Fr; WIDTH]) -> Fr {
    let products = coefficients.into_iter().zip(numbers);
    products.map(|(factor, number)| if factor.is_one() { *number } else { *number * factor }).sum()
}

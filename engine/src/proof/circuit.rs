//! The statement of a proof, as constraints.
//!
//! The prover knows four numbers of output and a salt such that
//!
//! * constraint_hash = hash_4(output),
//! * output_commitment = hash_2(constraint_hash, salt),
//!
//! and made the proof for this task and this agent: hash_2(hash_2(task_id, agent),
//! output_commitment) is computed too, so that every public input occurs in a constraint (spec
//! speculation.md, Proofs).
//!
//! A fifth power takes three constraints: x·x = x², x²·x = x³ and x²·x³ = x⁵. Written this way, x³
//! never occurs on the left and x² never on the right, so a third of the key's points on either
//! side are zero and cost a prover nothing. Everything else is linear and takes no constraints,
//! except the two equations above.

use super::{
    constants::WIDTH,
    poseidon2::{Arithmetic, POWERS, hash_2, hash_4, sum},
    statement::{INPUTS, Statement, Witness},
};
use ark_bn254::Fr;
use ark_ff::{Field as _, One as _};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, SynthesisError, Variable,
};
use std::{convert::Infallible, vec};

/// Permutations: one for the output, one for the commitment, two for task and agent.
const PERMUTATIONS: usize = 4;
/// Constraints of the circuit.
pub const CONSTRAINTS: usize = 3 * POWERS * PERMUTATIONS + 2;
/// Variables that are not public inputs: the private ones, and three for each fifth power.
pub(super) const WITNESSES: usize = WIDTH + 1 + 3 * POWERS * PERMUTATIONS;

/// The variables in the equations, in the order of their numbers.
struct Variables<N> {
    task_id: N,
    agent: N,
    constraint_hash: N,
    output_commitment: N,
    output: [N; WIDTH],
    salt: N,
}

/// The two hashes that must equal public inputs.
struct Hashes<N> {
    constraint_hash: N,
    output_commitment: N,
}

/// Computes the circuit's values, in the circuit's order.
fn compute<A: Arithmetic>(
    arithmetic: &mut A,
    variables: Variables<A::Number>,
) -> Result<Hashes<A::Number>, A::Error> {
    let Variables { task_id, agent, constraint_hash, output_commitment, output, salt } = variables;
    let hashes = Hashes {
        constraint_hash: hash_4(arithmetic, output)?,
        output_commitment: hash_2(arithmetic, constraint_hash, salt)?,
    };
    let claim = hash_2(arithmetic, task_id, agent)?;
    hash_2(arithmetic, claim, output_commitment)?;
    Ok(hashes)
}

/// A value for every variable, and the constraints' factors, which follow from these values.
pub(super) struct CircuitValues {
    inputs: [Fr; INPUTS],
    witnesses: Vec<Fr>,
    factors: Factors,
}

/// The factors of each constraint, in the order of the constraints.
pub(super) struct Factors {
    /// The left factors, then one and the public inputs: Groth16 needs each of these in a row of
    /// its own, times zero.
    pub(super) left: Vec<Fr>,
    /// The right factors, without those zeros.
    pub(super) right: Vec<Fr>,
}

impl CircuitValues {
    pub(super) fn of(statement: &Statement, witness: &Witness) -> Self {
        let inputs = statement.inputs().map(|input| input.0);
        let [task_id, agent, constraint_hash, output_commitment] = inputs;
        let output = witness.output.map(|number| number.0);
        let salt = witness.salt.0;
        let mut witnesses = Vec::with_capacity(WITNESSES);
        witnesses.extend(output);
        witnesses.push(salt);
        let left = Vec::with_capacity(CONSTRAINTS + 1 + INPUTS);
        let right = Vec::with_capacity(CONSTRAINTS);
        let mut recorder = Recorder { witnesses, factors: Factors { left, right } };
        let variables =
            Variables { task_id, agent, constraint_hash, output_commitment, output, salt };
        let Ok(hashes) = compute(&mut recorder, variables);
        let Recorder { witnesses, mut factors } = recorder;
        factors.left.extend([hashes.constraint_hash, hashes.output_commitment, Fr::ONE]);
        factors.left.extend(inputs);
        factors.right.extend([Fr::ONE; 2]);
        Self { inputs, witnesses, factors }
    }

    /// All values in the order of the matrices' columns (one, the inputs, the others), and the
    /// constraints' factors.
    pub(super) fn into_parts(self) -> (Vec<Fr>, Factors) {
        let mut columns = Vec::with_capacity(1 + INPUTS + WITNESSES);
        columns.push(Fr::ONE);
        columns.extend(self.inputs);
        columns.extend(self.witnesses);
        (columns, self.factors)
    }
}

/// Field arithmetic that records each power that is a variable, and the factors of its product.
struct Recorder {
    witnesses: Vec<Fr>,
    factors: Factors,
}

impl Arithmetic for Recorder {
    type Number = Fr;
    type Error = Infallible;

    fn combine(&self, coefficients: [Fr; WIDTH], numbers: &[Fr; WIDTH]) -> Fr {
        sum(coefficients, numbers)
    }

    fn fifth_power(&mut self, number: &Fr, constant: Fr) -> Result<Fr, Infallible> {
        let base = *number + constant;
        let square = base.square();
        let cube = square * base;
        let fifth = square * cube;
        self.witnesses.extend([square, cube, fifth]);
        self.factors.left.extend([base, square, square]);
        self.factors.right.extend([base, base, cube]);
        Ok(fifth)
    }
}

/// The circuit, with values for a prover or without values for a setup.
pub struct Circuit(Option<CircuitValues>);

impl Circuit {
    pub fn blank() -> Self {
        Self(None)
    }

    pub fn of(statement: &Statement, witness: &Witness) -> Self {
        Self(Some(CircuitValues::of(statement, witness)))
    }
}

impl ConstraintSynthesizer<Fr> for Circuit {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let (inputs, values) = match self.0 {
            Some(CircuitValues { inputs, witnesses, .. }) => (inputs.map(Some), Some(witnesses)),
            None => ([None; INPUTS], None),
        };
        let mut builder =
            Builder { cs: cs.clone(), values: values.map(|values| values.into_iter()) };
        let input = |value: Option<Fr>| {
            cs.new_input_variable(|| value.ok_or(SynthesisError::AssignmentMissing))
        };
        let [task_id, agent, constraint_hash, output_commitment] = inputs.map(input);
        let (constraint_hash, output_commitment) = (constraint_hash?, output_commitment?);
        let variables = Variables {
            task_id: task_id?.into(),
            agent: agent?.into(),
            constraint_hash: constraint_hash.into(),
            output_commitment: output_commitment.into(),
            output: [builder.next()?, builder.next()?, builder.next()?, builder.next()?]
                .map(LinearCombination::from),
            salt: builder.next()?.into(),
        };
        let hashes = compute(&mut builder, variables)?;
        builder.equal(hashes.constraint_hash, constraint_hash)?;
        builder.equal(hashes.output_commitment, output_commitment)
    }
}

struct Builder {
    cs: ConstraintSystemRef<Fr>,
    /// Values of the assignment that have no variable yet.
    values: Option<vec::IntoIter<Fr>>,
}

impl Builder {
    fn next(&mut self) -> Result<Variable, SynthesisError> {
        let value = self.values.as_mut().and_then(Iterator::next);
        self.cs.new_witness_variable(|| value.ok_or(SynthesisError::AssignmentMissing))
    }

    fn product(
        &mut self,
        left: LinearCombination<Fr>,
        right: LinearCombination<Fr>,
    ) -> Result<Variable, SynthesisError> {
        let product = self.next()?;
        self.cs.enforce_r1cs_constraint(|| left, || right, || product.into())?;
        Ok(product)
    }

    fn equal(&self, left: LinearCombination<Fr>, right: Variable) -> Result<(), SynthesisError> {
        self.cs.enforce_r1cs_constraint(|| left, || Variable::One.into(), || right.into())
    }
}

impl Arithmetic for Builder {
    type Number = LinearCombination<Fr>;
    type Error = SynthesisError;

    fn combine(
        &self,
        coefficients: [Fr; WIDTH],
        numbers: &[LinearCombination<Fr>; WIDTH],
    ) -> LinearCombination<Fr> {
        let mut combined = LinearCombination::zero();
        for (factor, number) in coefficients.into_iter().zip(numbers) {
            combined.extend(number.iter().map(|(coefficient, variable)| {
                (if factor.is_one() { *coefficient } else { factor * coefficient }, *variable)
            }));
        }
        combined.compactify();
        combined
    }

    fn fifth_power(
        &mut self,
        number: &LinearCombination<Fr>,
        constant: Fr,
    ) -> Result<LinearCombination<Fr>, SynthesisError> {
        let mut base = number.clone();
        base.push((constant, Variable::One));
        base.compactify();
        let square = self.product(base.clone(), base.clone())?;
        let cube = self.product(square.into(), base)?;
        self.product(square.into(), cube.into()).map(LinearCombination::from)
    }
}

//! The form of a proof on the wire and in storage: 388 bytes (spec speculation.md, Proofs).
//!
//! | bytes | what |
//! |---|---|
//! | 64 | A, a point of G1 |
//! | 128 | B, a point of G2 |
//! | 64 | C, a point of G1 |
//! | 4 | number of public inputs, u32 big-endian: 4 |
//! | 4 × 32 | task_id, agent, constraint_hash, output_commitment |
//!
//! Points are uncompressed and big-endian, as in [`super::points`]. A proof has exactly one form:
//! points are on their curves, in their groups and not at infinity, numbers are below their moduli,
//! and a proof that was read is written as the same bytes.

use super::{
    points::{Point, PointError},
    statement::{Element, INPUTS, Statement},
};
use ark_bn254::{G1Affine, G2Affine};

/// Bytes of a proof.
pub const PROOF_BYTES: usize = POINTS_BYTES + 4 + 32 * INPUTS;
/// Bytes of a proof's points.
pub(super) const POINTS_BYTES: usize = 64 + 128 + 64;
const _: () = assert!(PROOF_BYTES == 388, "a proof has 388 bytes (spec speculation.md, Proofs)");

/// The public inputs' names, in their order.
pub(super) const INPUT_NAMES: [&str; INPUTS] =
    ["task_id", "agent", "constraint_hash", "output_commitment"];

/// The reason why bytes are not a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    #[error("{got} bytes where a proof has {PROOF_BYTES}")]
    Length { got: usize },
    #[error("{got} public inputs where a proof has {INPUTS}")]
    Count { got: u32 },
    #[error("public input `{input}` is not below the field's modulus")]
    Input { input: &'static str },
    #[error("point {point}: {why}")]
    Point {
        /// A, B or C.
        point: &'static str,
        why: PointError,
    },
    #[error("not in a proof's canonical form")]
    NotCanonical,
}

/// A proof: points to check, and the statement that they are checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    pub(super) a: G1Affine,
    pub(super) b: G2Affine,
    pub(super) c: G1Affine,
    pub statement: Statement,
}

impl Proof {
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let length = FormatError::Length { got: bytes.len() };
        let bytes: &[u8; PROOF_BYTES] = bytes.try_into().map_err(|_| length)?;
        let (points, rest) = bytes.split_at(POINTS_BYTES);
        // Cheap checks come first.
        let statement = read_statement(rest)?;
        let rest = &mut &*points;
        let read = |point, why| FormatError::Point { point, why };
        let proof = Self {
            a: Point::read(rest).map_err(|why| read("A", why))?,
            b: Point::read(rest).map_err(|why| read("B", why))?,
            c: Point::read(rest).map_err(|why| read("C", why))?,
            statement,
        };
        if proof.to_bytes() == *bytes { Ok(proof) } else { Err(FormatError::NotCanonical) }
    }

    pub fn to_bytes(&self) -> [u8; PROOF_BYTES] {
        let mut points = Vec::with_capacity(POINTS_BYTES);
        self.a.write(&mut points);
        self.b.write(&mut points);
        self.c.write(&mut points);
        frame(&points, &self.statement)
    }
}

impl Statement {
    /// The statement that a proof carries, read from its end alone. The bytes before it are not
    /// checked.
    pub fn carried(proof: &[u8]) -> Result<Self, FormatError> {
        let length = FormatError::Length { got: proof.len() };
        let proof: &[u8; PROOF_BYTES] = proof.try_into().map_err(|_| length)?;
        read_statement(&proof[POINTS_BYTES..])
    }

    /// Makes a proof carry this statement, whatever it proves.
    pub fn put_into(&self, proof: &mut [u8; PROOF_BYTES]) {
        *proof = frame(&proof[..POINTS_BYTES], self);
    }
}

/// A proof's form, with `points` in the place of its points.
pub(super) fn frame(points: &[u8], statement: &Statement) -> [u8; PROOF_BYTES] {
    let mut bytes = Vec::with_capacity(PROOF_BYTES);
    bytes.extend_from_slice(points);
    bytes.extend((INPUTS as u32).to_be_bytes());
    bytes.extend(statement.inputs().into_iter().flat_map(Element::to_bytes));
    bytes.try_into().expect("points, a count and the inputs are as long as a proof")
}

fn read_statement(bytes: &[u8]) -> Result<Statement, FormatError> {
    let (count, inputs) = bytes.split_at(4);
    let got = u32::from_be_bytes(count.try_into().expect("four bytes were split off"));
    if got != INPUTS as u32 {
        return Err(FormatError::Count { got });
    }
    let (inputs, _) = inputs.as_chunks();
    let input = |i: usize| {
        let input = FormatError::Input { input: INPUT_NAMES[i] };
        inputs.get(i).and_then(Element::from_bytes).ok_or(input)
    };
    Ok(Statement {
        task_id: input(0)?,
        agent: input(1)?,
        constraint_hash: input(2)?,
        output_commitment: input(3)?,
    })
}

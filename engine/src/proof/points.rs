//! Points of BN254's two groups as bytes: uncompressed, coordinates big-endian.
//!
//! A point of G1 is x ‖ y, 64 bytes. A point of G2 has coordinates c0 and c1 · u of a quadratic
//! extension, and is x.c1 ‖ x.c0 ‖ y.c1 ‖ y.c0, 128 bytes: the order of Ethereum's and Solana's
//! precompiled pairings (EIP-197). The point at infinity, which has no coordinates, is all zeros.
//! No bit is left over for anything else, so a point has one form.

use super::statement::{bytes, integer};
use ark_bn254::{Fq, Fq2, g1::G1Affine, g2::G2Affine};
use ark_ec::AffineRepr as _;
use ark_ff::PrimeField as _;

/// The reason why bytes are not a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PointError {
    #[error("cut short")]
    CutShort,
    #[error("a coordinate not below the modulus")]
    Coordinate,
    #[error("not on the curve")]
    OffCurve,
    #[error("on the curve, but not in the group of prime order")]
    Subgroup,
    /// The neutral element, which no honest setup or prover produces.
    #[error("the point at infinity")]
    Infinity,
}

pub(super) trait Point: Sized {
    fn write(&self, to: &mut Vec<u8>);

    /// Reads a point off the front of `bytes`; it may be at infinity.
    fn read_any(bytes: &mut &[u8]) -> Result<Self, PointError>;

    fn is_infinity(&self) -> bool;

    /// Reads a point off the front of `bytes` that is not at infinity.
    fn read(bytes: &mut &[u8]) -> Result<Self, PointError> {
        let point = Self::read_any(bytes)?;
        if point.is_infinity() { Err(PointError::Infinity) } else { Ok(point) }
    }
}

impl Point for G1Affine {
    fn write(&self, to: &mut Vec<u8>) {
        let (x, y) = self.xy().unwrap_or_default();
        write(&[x, y], to);
    }

    fn read_any(bytes: &mut &[u8]) -> Result<Self, PointError> {
        let point = Self::new_unchecked(read(bytes)?, read(bytes)?);
        // G1 is all of its curve: the cofactor is 1.
        if point.is_infinity() || point.is_on_curve() {
            Ok(point)
        } else {
            Err(PointError::OffCurve)
        }
    }

    fn is_infinity(&self) -> bool {
        self.is_zero()
    }
}

impl Point for G2Affine {
    fn write(&self, to: &mut Vec<u8>) {
        let (x, y) = self.xy().unwrap_or_default();
        write(&[x.c1, x.c0, y.c1, y.c0], to);
    }

    fn read_any(bytes: &mut &[u8]) -> Result<Self, PointError> {
        let [x1, x0, y1, y0] = [read(bytes), read(bytes), read(bytes), read(bytes)];
        let point = Self::new_unchecked(Fq2::new(x0?, x1?), Fq2::new(y0?, y1?));
        if point.is_infinity() {
            Ok(point)
        } else if !point.is_on_curve() {
            Err(PointError::OffCurve)
        } else if !point.is_in_correct_subgroup_assuming_on_curve() {
            Err(PointError::Subgroup)
        } else {
            Ok(point)
        }
    }

    fn is_infinity(&self) -> bool {
        self.is_zero()
    }
}

fn write(coordinates: &[Fq], to: &mut Vec<u8>) {
    for coordinate in coordinates {
        to.extend(bytes(coordinate.into_bigint()));
    }
}

fn read(from: &mut &[u8]) -> Result<Fq, PointError> {
    let (bytes, rest) = from.split_first_chunk().ok_or(PointError::CutShort)?;
    *from = rest;
    Fq::from_bigint(integer(bytes)).ok_or(PointError::Coordinate)
}

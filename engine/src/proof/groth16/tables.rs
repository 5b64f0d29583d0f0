//! A prover as bytes, for another process of the same program: reading them takes milliseconds,
//! making a prover from its seed some hundred.
//!
//! They are as secret as the setup's seed, and are trusted: points are not checked. Everything is
//! little-endian. A number takes 8 bytes; a list of points is its length and the points; a point is
//! its coordinates as numbers in their field, each four limbs of 64 bits in Montgomery form, all
//! zero for the point at infinity. The key's own points come first, then the multiples for A, B and
//! C.

use super::{keys::ProvingKey, prover::Prover, quotient::Quotients, sums::Multiples};
use ark_bn254::{Fq, g1, g2};
use ark_ec::{
    AffineRepr as _,
    short_weierstrass::{Affine, SWCurveConfig},
};
use ark_ff::{BigInt, Field, Zero as _};

impl Prover {
    /// The prover as bytes: some 8 MB.
    pub fn to_tables(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let key = &self.key.key;
        let vk = &key.vk;
        points(&[vk.alpha_g1, key.beta_g1, key.delta_g1], &mut out);
        points(&[vk.beta_g2, vk.gamma_g2, vk.delta_g2], &mut out);
        let lists = [&vk.gamma_abc_g1, &key.a_query, &key.b_g1_query, &key.h_query, &key.l_query];
        for list in lists {
            points(list, &mut out);
        }
        points(&key.b_g2_query, &mut out);
        multiples(&self.a, &mut out);
        multiples(&self.b, &mut out);
        multiples(&self.c, &mut out);
        out
    }

    /// The prover that [`Self::to_tables`] gave; `None` where the bytes' lengths do not fit.
    pub fn from_tables(tables: &[u8]) -> Option<Self> {
        let from = &mut &*tables;
        let [alpha_g1, beta_g1, delta_g1] = read_points::<g1::Config>(from)?.try_into().ok()?;
        let [beta_g2, gamma_g2, delta_g2] = read_points::<g2::Config>(from)?.try_into().ok()?;
        let gamma_abc_g1 = read_points(from)?;
        let vk = ark_groth16::VerifyingKey { alpha_g1, beta_g2, gamma_g2, delta_g2, gamma_abc_g1 };
        let key = ProvingKey::of(ark_groth16::ProvingKey {
            vk,
            beta_g1,
            delta_g1,
            a_query: read_points(from)?,
            b_g1_query: read_points(from)?,
            h_query: read_points(from)?,
            l_query: read_points(from)?,
            b_g2_query: read_points(from)?,
        })?;
        let (a, b, c) = (read_multiples(from)?, read_multiples(from)?, read_multiples(from)?);
        from.is_empty().then(|| Self { key, quotients: Quotients::new(), a, b, c })
    }
}

fn number(number: usize, to: &mut Vec<u8>) {
    to.extend((number as u64).to_le_bytes());
}

fn read_number(from: &mut &[u8]) -> Option<usize> {
    let (number, rest) = from.split_first_chunk()?;
    *from = rest;
    usize::try_from(u64::from_le_bytes(*number)).ok()
}

fn points<P: SWCurveConfig<BaseField: Field<BasePrimeField = Fq>>>(
    points: &[Affine<P>],
    to: &mut Vec<u8>,
) {
    number(points.len(), to);
    for point in points {
        let (x, y) = point.xy().unwrap_or_default();
        for coordinate in [x, y] {
            for number in coordinate.to_base_prime_field_elements() {
                to.extend(number.0.0.into_iter().flat_map(u64::to_le_bytes));
            }
        }
    }
}

fn read_points<P: SWCurveConfig<BaseField: Field<BasePrimeField = Fq>>>(
    from: &mut &[u8],
) -> Option<Vec<Affine<P>>> {
    let degree = P::BaseField::extension_degree() as usize;
    let length = read_number(from)?.checked_mul(2 * degree * 32)?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    let (words, _) = bytes.as_chunks::<8>();
    let (numbers, _) = words.as_chunks::<4>();
    let numbers =
        numbers.iter().map(|limbs| Fq::new_unchecked(BigInt(limbs.map(u64::from_le_bytes))));
    let numbers: Vec<Fq> = numbers.collect();
    let coordinates = numbers.chunks_exact(degree);
    let coordinates =
        coordinates.map(|n| P::BaseField::from_base_prime_field_elems(n.iter().copied()));
    let coordinates: Vec<P::BaseField> = coordinates.collect::<Option<_>>()?;
    let (pairs, _) = coordinates.as_chunks::<2>();
    let read = |[x, y]: &[P::BaseField; 2]| match x.is_zero() && y.is_zero() {
        true => Affine::identity(),
        false => Affine::new_unchecked(*x, *y),
    };
    Some(pairs.iter().map(read).collect())
}

fn multiples<P: SWCurveConfig<BaseField: Field<BasePrimeField = Fq>>>(
    all: &Multiples<P>,
    to: &mut Vec<u8>,
) {
    number(all.bits, to);
    points(&all.points, to);
    number(all.numbers.len(), to);
    all.numbers.iter().for_each(|one| number(*one, to));
}

fn read_multiples<P: SWCurveConfig<BaseField: Field<BasePrimeField = Fq>>>(
    from: &mut &[u8],
) -> Option<Multiples<P>> {
    let (bits, points) = (read_number(from)?, read_points(from)?);
    let length = read_number(from)?;
    let numbers = (0..length).map(|_| read_number(from));
    Some(Multiples { bits, points, numbers: numbers.collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::{Element, Witness};

    #[test]
    fn a_prover_read_back_makes_the_same_proofs() {
        let prover = Prover::new(ProvingKey::setup(&[1; 32]));
        let tables = prover.to_tables();
        let read = Prover::from_tables(&tables).unwrap();
        assert!(read.key() == prover.key());
        let witness = Witness { output: [5, 6, 7, 8].map(Element::from), salt: Element::from(9) };
        let proof = |prover: &Prover| prover.prove(&[2; 32], &[3; 32], &witness, &[4; 32]);
        assert_eq!(proof(&read), proof(&prover));
        for length in [0, 7, 8, 1_000, tables.len() - 1] {
            assert!(Prover::from_tables(&tables[..length]).is_none(), "{length}");
        }
        assert!(Prover::from_tables(&[&tables[..], &[0]].concat()).is_none());
    }
}

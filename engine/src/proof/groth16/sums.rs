//! Sums of a key's points, each times a number: nearly all of a prover's work.
//!
//! A key's points are the same for every proof, so their multiples by powers of two are computed
//! once. A number of 254 bits is then a handful of digits, each of which selects the bucket for one
//! of these multiples, and the points in a bucket need no doubling (Pippenger's method, with all
//! windows merged into one).
//!
//! Within a bucket, points are added in pairs, round by round. The additions of a round do not
//! depend on one another, so they stay in affine coordinates and share one inversion: six
//! multiplications each, where adding to a running sum in Jacobian coordinates takes eleven.
//!
//! The result is a point in each bucket, which counts as often as the bucket's number says. That is
//! a sum of the same kind, with numbers of a few bits: their halves are digits, and the points go
//! into the few buckets for these digits.

use ark_bn254::Fr;
use ark_ec::{
    AffineRepr as _, CurveGroup as _,
    short_weierstrass::{Affine, Projective, SWCurveConfig},
};
use ark_ff::{AdditiveGroup, Field, PrimeField as _, batch_inversion};

/// Points, and their multiples by the powers of two of the digits.
pub(super) struct Multiples<P: SWCurveConfig> {
    /// Bits of a digit. Digits are signed: a bucket for each absolute value, 2^(bits − 1) of them.
    pub(super) bits: usize,
    /// For each point, for each digit from the lowest: the point times the value of a one in this
    /// digit.
    pub(super) points: Vec<Affine<P>>,
    /// The index of the number that each point is multiplied by. Points at infinity are left out.
    pub(super) numbers: Vec<usize>,
}

impl<P: SWCurveConfig> Multiples<P> {
    pub(super) fn of(points: impl IntoIterator<Item = Affine<P>>) -> Self {
        let points = points.into_iter().enumerate().filter(|(_, point)| !point.is_zero());
        let (numbers, points): (Vec<_>, Vec<_>) = points.unzip();
        let bits = digit_bits(points.len());
        let digits = digits(bits);
        let mut multiples: Vec<_> = points.iter().map(|point| point.into_group()).collect();
        let mut points = vec![Affine::identity(); digits * points.len()];
        for digit in 0..digits {
            if digit > 0 {
                for point in &mut multiples {
                    (0..bits).for_each(|_| {
                        point.double_in_place();
                    });
                }
            }
            for (i, point) in Projective::normalize_batch(&multiples).into_iter().enumerate() {
                points[i * digits + digit] = point;
            }
        }
        Self { bits, points, numbers }
    }

    /// The sum of all points, each times its number.
    pub(super) fn sum(&self, numbers: &[Fr]) -> Projective<P> {
        let mut digits = Vec::with_capacity(self.points.len());
        for &i in &self.numbers {
            digits.extend(split(numbers[i], self.bits));
        }
        PointBuckets::of(1 << (self.bits - 1), &digits, &self.points).sum()
    }
}

/// The number of digits of `bits` bits, with one more bit for the last digit's carry.
fn digits(bits: usize) -> usize {
    (Fr::MODULUS_BIT_SIZE as usize + 1).div_ceil(bits)
}

/// A number's digits, between −2^(bits − 1) and 2^(bits − 1), from the lowest.
fn split(number: Fr, bits: usize) -> impl Iterator<Item = i32> {
    let half = 1 << (bits - 1);
    let mut rest = number.into_bigint();
    let mut carry = 0;
    (0..digits(bits)).map(move |_| {
        let digit = (rest.0[0] & ((1 << bits) - 1)) as i32 + carry;
        rest >>= bits as u32;
        carry = i32::from(digit > half);
        digit - (carry << bits)
    })
}

/// Bits of a digit for this many points. A digit takes one addition, except for the first in its
/// bucket; a bucket takes two more, to count as often as its number says.
fn digit_bits(points: usize) -> usize {
    let additions = |bits: &usize| points * digits(*bits) + (1 << (bits - 1));
    (2..=16).min_by_key(additions).expect("sixteen is more than two")
}

/// If a bucket's number has at most this many bits, each bucket is added to a running sum.
const RUNNING: u32 = 4;

/// Points in buckets. The n-th counts n times, from 1; the number of buckets is a power of two.
struct PointBuckets<P: SWCurveConfig> {
    /// All buckets' points, one bucket after the other.
    points: Vec<Affine<P>>,
    /// The number of points in each bucket.
    lengths: Vec<usize>,
}

impl<P: SWCurveConfig> PointBuckets<P> {
    /// Puts each point into the bucket of its digit, negated if the digit is negative.
    fn of(buckets: usize, digits: &[i32], points: &[Affine<P>]) -> Self {
        let mut lengths = vec![0; buckets];
        for digit in digits.iter().filter(|digit| **digit != 0) {
            lengths[digit.unsigned_abs() as usize - 1] += 1;
        }
        let mut total = 0;
        let starts = lengths.iter().map(|length| {
            total += length;
            total - length
        });
        let mut next: Vec<_> = starts.collect();
        let mut sorted = vec![Affine::identity(); total];
        for (digit, point) in digits.iter().zip(points).filter(|(digit, _)| **digit != 0) {
            let next = &mut next[digit.unsigned_abs() as usize - 1];
            sorted[*next] = if *digit < 0 { -*point } else { *point };
            *next += 1;
        }
        Self { points: sorted, lengths }
    }

    fn sum(mut self) -> Projective<P> {
        while self.lengths.iter().any(|length| *length > 1) {
            self.halve();
        }
        let numbers = (1..).zip(&self.lengths).filter(|(_, length)| **length == 1);
        let numbers: Vec<i32> = numbers.map(|(number, _)| number).collect();
        let bits = self.lengths.len().ilog2();
        if bits <= RUNNING {
            // The last bucket counts as often as there are buckets: once in each of these sums.
            let (mut above, mut sum) = (Projective::ZERO, Projective::ZERO);
            let mut numbered = numbers.iter().zip(&self.points).rev().peekable();
            for bucket in (1..=1 << bits).rev() {
                if let Some((_, point)) = numbered.next_if(|(number, _)| **number == bucket) {
                    above += point;
                }
                sum += above;
            }
            return sum;
        }
        // A bucket's number is a high and a low digit, each of which has a bucket in turn.
        let low = bits / 2;
        let half = |bits: u32, digits: Vec<i32>| Self::of(1 << bits, &digits, &self.points).sum();
        let mut sum = half(bits - low, numbers.iter().map(|number| number >> low).collect());
        (0..low).for_each(|_| {
            sum.double_in_place();
        });
        sum + half(low, numbers.iter().map(|number| number & ((1 << low) - 1)).collect())
    }

    /// Adds the points of each bucket in pairs.
    fn halve(&mut self) {
        let mut slopes = Vec::with_capacity(self.points.len() / 2);
        let mut rest = self.points.as_slice();
        for length in &self.lengths {
            let (bucket, after) = rest.split_at(*length);
            slopes.extend(bucket.chunks_exact(2).map(|pair| run(&pair[0], &pair[1])));
            rest = after;
        }
        batch_inversion(&mut slopes);

        let mut slopes = slopes.into_iter();
        let (mut from, mut to) = (0, 0);
        for length in &mut self.lengths {
            for pair in (0..*length / 2).map(|pair| from + 2 * pair) {
                let inverse = slopes.next().unwrap_or_default();
                self.points[to] = add(&self.points[pair], &self.points[pair + 1], inverse);
                to += 1;
            }
            if *length % 2 == 1 {
                self.points[to] = self.points[from + *length - 1];
                to += 1;
            }
            from += *length;
            *length = length.div_ceil(2);
        }
        self.points.truncate(to);
    }
}

/// The denominator of the slope of the line through two points; zero if there is no such line.
fn run<P: SWCurveConfig>(a: &Affine<P>, b: &Affine<P>) -> P::BaseField {
    if a.is_zero() || b.is_zero() {
        P::BaseField::ZERO
    } else if a.x != b.x {
        b.x - a.x
    } else if a.y == b.y {
        a.y.double()
    } else {
        P::BaseField::ZERO
    }
}

/// The sum of two points of a curve y² = x³ + b, given the inverse of [`run`].
fn add<P: SWCurveConfig>(a: &Affine<P>, b: &Affine<P>, inverse: P::BaseField) -> Affine<P> {
    if a.is_zero() {
        return *b;
    }
    if b.is_zero() {
        return *a;
    }
    let slope = if a.x != b.x {
        (b.y - a.y) * inverse
    } else if a.y == b.y {
        let square = a.x.square();
        (square.double() + square) * inverse
    } else {
        return Affine::identity();
    };
    let x = slope.square() - a.x - b.x;
    Affine::new_unchecked(x, slope * (a.x - x) - a.y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bn254::{g1, g2};
    use ark_ec::VariableBaseMSM;
    use ark_ff::UniformRand as _;
    use rand_chacha_03::{ChaCha20Rng, rand_core::SeedableRng as _};

    /// Checks the sum against that of arkworks.
    fn check<P: SWCurveConfig<ScalarField = Fr>>(points: &[Affine<P>], numbers: &[Fr])
    where
        Projective<P>: VariableBaseMSM<MulBase = Affine<P>, ScalarField = Fr>,
    {
        let expected = Projective::<P>::msm_unchecked(points, numbers);
        assert_eq!(Multiples::of(points.iter().copied()).sum(numbers), expected);
    }

    #[test]
    fn sums_are_those_of_arkworks() {
        let mut random = ChaCha20Rng::from_seed([1; 32]);
        for count in [0, 1, 2, 3, 50, 1_500] {
            let mut numbers: Vec<_> = (0..count).map(|_| Fr::rand(&mut random)).collect();
            // The largest digit, and the first one that carries.
            let half = Fr::from(1 << (digit_bits(count) - 1));
            let one = Fr::from(1);
            let edges = [Fr::from(0), one, -one, half, half + one, -half];
            numbers.iter_mut().zip(edges).for_each(|(number, edge)| *number = edge);
            let points = |_| Affine::<g1::Config>::rand(&mut random);
            check(&(0..count).map(points).collect::<Vec<_>>(), &numbers);
        }
        let numbers: Vec<_> = (0..20).map(|_| Fr::rand(&mut random)).collect();
        let points = |_| Affine::<g2::Config>::rand(&mut random);
        check(&(0..20).map(points).collect::<Vec<_>>(), &numbers);
    }

    #[test]
    fn equal_opposite_and_infinite_points_are_added_too() {
        let generator = Affine::<g1::Config>::generator();
        let infinity = Affine::identity();
        let points = [generator, generator, -generator, infinity, -generator, generator];
        for numbers in [[5, 5, 5, 5, 5, 5], [7, 7, 7, 7, 7, 0], [1, 1, 0, 3, 0, 1], [0; 6]] {
            check(&points, &numbers.map(Fr::from));
        }
        check(&points, &[-Fr::from(1); 6]);
    }
}

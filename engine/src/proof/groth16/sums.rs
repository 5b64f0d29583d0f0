//! Sums of a key's points, each times a number: what proving consists of.
//!
//! A key's points are the same for every proof, so their multiples by powers of two are computed
//! once. A number of 254 bits is then a handful of digits, each of which says into which bucket a
//! point that is at hand goes; no bucket's points need doubling (Pippenger's method, with all
//! windows falling into one).
//!
//! Within a bucket, points are added in pairs, round by round. A round's additions do not wait for
//! one another, so that they stay in affine coordinates and share one inversion: six
//! multiplications each, where adding to a running sum in Jacobian coordinates takes eleven.

use ark_bn254::Fr;
use ark_ec::{
    AffineRepr as _, CurveGroup as _,
    short_weierstrass::{Affine, Projective, SWCurveConfig},
};
use ark_ff::{AdditiveGroup, Field, PrimeField as _, batch_inversion};

/// Points, and their multiples by the powers of two that digits stand for.
pub(super) struct Multiples<P: SWCurveConfig> {
    /// Bits of a digit. Digits are signed: a bucket for each absolute value, 2^(bits − 1) of them.
    bits: usize,
    /// For each digit, from the lowest: the points times what a one there is worth.
    digits: Vec<Vec<Affine<P>>>,
    /// Which number each point is multiplied by. Points at infinity are left out.
    numbers: Vec<usize>,
}

impl<P: SWCurveConfig> Multiples<P> {
    /// Those of `points`, to be computed once.
    pub(super) fn of(points: impl IntoIterator<Item = Affine<P>>) -> Self {
        let points = points.into_iter().enumerate().filter(|(_, point)| !point.is_zero());
        let (numbers, points): (Vec<_>, Vec<_>) = points.unzip();
        let bits = digit_bits(points.len());
        let mut multiples: Vec<_> = points.iter().map(|point| point.into_group()).collect();
        let mut digits = vec![points];
        // One bit more than numbers have, for the last digit's carry.
        for _ in 1..(Fr::MODULUS_BIT_SIZE as usize + 1).div_ceil(bits) {
            for point in &mut multiples {
                (0..bits).for_each(|_| {
                    point.double_in_place();
                });
            }
            digits.push(Projective::normalize_batch(&multiples));
        }
        Self { bits, digits, numbers }
    }

    /// The sum of all points, each times its number.
    pub(super) fn sum(&self, numbers: &[Fr]) -> Projective<P> {
        let buckets = 1 << (self.bits - 1);
        let digits: Vec<i32> = self.numbers.iter().flat_map(|&i| self.split(numbers[i])).collect();
        let mut buckets = Buckets::new(buckets, &digits);
        let per_number = self.digits.len();
        for (i, digits) in digits.chunks_exact(per_number).enumerate() {
            for (digit, points) in digits.iter().zip(&self.digits) {
                buckets.put(*digit, points[i]);
            }
        }
        buckets.sum()
    }

    /// A number's digits, between −2^(bits − 1) and 2^(bits − 1), from the lowest.
    fn split(&self, number: Fr) -> impl Iterator<Item = i32> {
        let (bits, half) = (self.bits, 1 << (self.bits - 1));
        let mut rest = number.into_bigint();
        let mut carry = 0;
        self.digits.iter().map(move |_| {
            let digit = (rest.0[0] & ((1 << bits) - 1)) as i32 + carry;
            rest >>= bits as u32;
            carry = i32::from(digit > half);
            digit - (carry << bits)
        })
    }
}

/// Bits of a digit for so many points: fewer digits mean fewer additions, more buckets more.
fn digit_bits(points: usize) -> usize {
    if points < 1_024 { 10 } else { 12 }
}

/// Points in buckets, of which the n-th counts n times, from 1.
struct Buckets<P: SWCurveConfig> {
    /// All buckets' points, one bucket after the other.
    points: Vec<Affine<P>>,
    /// How many points each has.
    lengths: Vec<usize>,
    /// Where each one's next point goes.
    next: Vec<usize>,
}

impl<P: SWCurveConfig> Buckets<P> {
    /// Room for as many points as there are digits that are not zero.
    fn new(buckets: usize, digits: &[i32]) -> Self {
        let mut lengths = vec![0; buckets];
        for digit in digits.iter().filter(|digit| **digit != 0) {
            lengths[digit.unsigned_abs() as usize - 1] += 1;
        }
        let mut total = 0;
        let starts = lengths.iter().map(|length| {
            total += length;
            total - length
        });
        let next = starts.collect();
        Self { points: vec![Affine::identity(); total], lengths, next }
    }

    /// Puts a point into the bucket of a digit; its negative, if the digit is negative.
    fn put(&mut self, digit: i32, point: Affine<P>) {
        if digit != 0 {
            let next = &mut self.next[digit.unsigned_abs() as usize - 1];
            self.points[*next] = if digit < 0 { -point } else { point };
            *next += 1;
        }
    }

    /// The sum over all buckets.
    fn sum(mut self) -> Projective<P> {
        while self.lengths.iter().any(|length| *length > 1) {
            self.halve();
        }
        // The last bucket counts as often as there are buckets: once in each of these sums.
        let mut points = self.points.into_iter().rev();
        let (mut above, mut sum) = (Projective::ZERO, Projective::ZERO);
        for length in self.lengths.into_iter().rev() {
            if length == 1
                && let Some(point) = points.next()
            {
                above += point;
            }
            sum += above;
        }
        sum
    }

    /// Adds each bucket's points in pairs.
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

/// What the slope of the line through two points is divided by; zero if there is no such line.
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

    /// Against the sum that arkworks computes.
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
            let edges = [Fr::from(0), Fr::from(1), -Fr::from(1), Fr::from(1 << 11), -Fr::from(512)];
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

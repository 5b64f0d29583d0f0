//! The validators that a runner connects to (spec connectivity.md §1).

use crate::primitives::{PublicKey, keccak256};

/// Minimum size of a subset, if there are that many validators.
pub const MIN_SIZE: usize = 3;
/// Maximum size of a subset.
pub const MAX_SIZE: usize = 8;

/// k = min(n, clamp(ceil(log2 n) + 1, 3, 8)) for `n` validators; 0 for 0.
pub const fn size(n: usize) -> usize {
    if n == 0 {
        return 0;
    }
    let ceil_log2 = (usize::BITS - (n - 1).leading_zeros()) as usize;
    let k = match ceil_log2 + 1 {
        k if k < MIN_SIZE => MIN_SIZE,
        k if k > MAX_SIZE => MAX_SIZE,
        k => k,
    };
    if k < n { k } else { n }
}

/// Sub(`runner`): indices into `validators`, nearest first: ordered by
/// keccak256(runner ‖ validator) over compressed keys, ties by the validator's address.
///
/// A runner's subset depends on no other runner, nor on the order in which validators are listed.
pub fn of(runner: &PublicKey, validators: &[PublicKey]) -> Vec<usize> {
    let mut order: Vec<_> = validators
        .iter()
        .enumerate()
        .map(|(i, v)| (keccak256(&[runner.as_bytes(), v.as_bytes()]), i))
        .collect();
    order.sort_by(|(a, i), (b, j)| {
        a.cmp(b).then_with(|| validators[*i].address().cmp(&validators[*j].address()))
    });
    order.truncate(size(validators.len()));
    order.into_iter().map(|(_, i)| i).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::primitives::SecretKey;

    #[test]
    fn sizes_follow_the_formula_not_the_table_of_the_source() {
        let sizes: Vec<_> = (0..=10).map(size).collect();
        // The source's table says 4 for 9 and 10.
        assert_eq!(sizes, [0, 1, 2, 3, 3, 4, 4, 4, 4, 5, 5]);
        assert_eq!([16, 17, 64, 65, 128, 129, usize::MAX].map(size), [5, 6, 7, 8, 8, 8, 8]);
    }

    #[test]
    fn the_order_of_the_validator_list_does_not_matter() {
        let runner = SecretKey::derive(b"seed", "runner-0").public_key();
        let mut validators: Vec<_> = (0..20)
            .map(|i| SecretKey::derive(b"seed", &format!("validator-{i}")).public_key())
            .collect();
        let keys = |validators: &[PublicKey]| -> Vec<_> {
            of(&runner, validators).into_iter().map(|i| validators[i].clone()).collect()
        };
        let expected = keys(&validators);
        assert_eq!(expected.len(), 6);
        validators.rotate_left(7);
        validators.swap(0, 11);
        assert_eq!(keys(&validators), expected);
    }
}

//! The validators that a runner connects to (spec connectivity.md §1).

use crate::primitives::{Hash, PublicKey, keccak256};
use std::sync::{Arc, Mutex, PoisonError};

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

/// The subsets of all runners, as positions in a committee, which may lack members of a subset.
type Members = Arc<Vec<Vec<u32>>>;

/// The newest results of [`members`], by what they follow from. Each block needs one of them, or
/// two while two subset epochs count, and they change with the registry and the validators only.
static MEMBERS: Mutex<Vec<(Hash, Members)>> = Mutex::new(Vec::new());
const MEMBERS_KEPT: usize = 4;

/// For each of `runners`, its subset of `validators` as positions in `committee`.
pub fn members(
    runners: &[&PublicKey],
    validators: &[PublicKey],
    committee: &[&PublicKey],
) -> Members {
    let mut inputs = Vec::with_capacity(33 * (runners.len() + validators.len() + committee.len()));
    for keys in [runners, committee] {
        inputs.extend_from_slice(&keys.len().to_be_bytes());
        for key in keys {
            inputs.extend_from_slice(key.as_bytes());
        }
    }
    for key in validators {
        inputs.extend_from_slice(key.as_bytes());
    }
    let inputs = keccak256(&[&inputs]);
    // No code panics while it holds the lock.
    let kept = || MEMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, members)) = kept().iter().find(|(from, _)| *from == inputs) {
        return members.clone();
    }
    let position = |key: &PublicKey| committee.iter().position(|member| *member == key);
    let subset = |runner: &&PublicKey| {
        let positions = of(runner, validators).into_iter().map(|i| position(&validators[i]));
        positions.flatten().filter_map(|i| u32::try_from(i).ok()).collect()
    };
    let members = Members::new(runners.iter().map(subset).collect());
    let mut kept = kept();
    kept.truncate(MEMBERS_KEPT - 1);
    kept.insert(0, (inputs, members.clone()));
    members
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
    fn remembered_members_are_those_of_each_input() {
        let keys = |kind: &str, count: usize| -> Vec<_> {
            let key = |i| SecretKey::derive(b"members", &format!("{kind}-{i}")).public_key();
            (0..count).map(key).collect()
        };
        let (runners, validators) = (keys("runner", 6), keys("validator", 12));
        let check = |runners: &[PublicKey], validators: &[PublicKey], committee: &[PublicKey]| {
            let expected: Vec<Vec<u32>> = runners
                .iter()
                .map(|runner| {
                    let subset = of(runner, validators).into_iter().map(|i| &validators[i]);
                    let position = |key| committee.iter().position(|member| member == key);
                    subset.filter_map(position).map(|i| i as u32).collect()
                })
                .collect();
            let (runners, committee): (Vec<_>, Vec<_>) =
                (runners.iter().collect(), committee.iter().collect());
            for _ in 0..2 {
                assert_eq!(*members(&runners, validators, &committee), expected);
            }
        };
        check(&runners, &validators, &validators);
        check(&runners[..5], &validators, &validators);
        check(&runners, &validators[..9], &validators);
        check(&runners, &validators, &validators[..9]);
        check(&runners[..0], &validators, &validators);
        check(&runners, &validators, &validators);
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

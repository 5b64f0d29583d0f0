//! Rules against restatements of them, vote by vote.

use crate::presence::canonical::*;
use proptest::prelude::*;

type Votes = Vec<(u32, Vec<bool>)>;

/// An independent implementation of the rules, one bit at a time.
fn expected(
    votes: &Votes,
    registry_len: u32,
    validators: u32,
    rule: ThresholdRule,
    members: &[Vec<u32>],
) -> Vec<bool> {
    let says = |bits: &[bool], i: usize| bits.get(i).copied().unwrap_or(false);
    let reached = |have: usize, base: usize| base > 0 && 3 * have >= base;
    (0..registry_len as usize)
        .map(|i| {
            let asked = |v: &u32| match rule {
                ThresholdRule::Subset => members[i].contains(v),
                _ => true,
            };
            let cast: Vec<_> = votes.iter().filter(|(v, _)| asked(v)).collect();
            let have = cast.iter().filter(|(_, bits)| says(bits, i)).count();
            let base = match rule {
                ThresholdRule::Committee => validators as usize,
                _ => cast.len(),
            };
            reached(have, base)
        })
        .collect()
}

fn bitmaps(votes: &Votes) -> Vec<(u32, Bitmap)> {
    let bitmap = |bits: &Vec<bool>| Bitmap::from_fn(bits.len() as u32, |i| bits[i as usize]);
    votes.iter().map(|(v, bits)| (*v, bitmap(bits))).collect()
}

fn borrowed(votes: &[(u32, Bitmap)]) -> Vec<(u32, &Bitmap)> {
    votes.iter().map(|(v, bitmap)| (*v, bitmap)).collect()
}

/// Validators, votes by some of them, registry length, subset of each runner.
fn cases() -> impl Strategy<Value = (u32, Votes, u32, Vec<Vec<u32>>)> {
    (1u32..40, prop_oneof![0u32..70, 500u32..530, 1000u32..1100]).prop_flat_map(|(n, len)| {
        let all: Vec<u32> = (0..n).collect();
        let signers = prop::sample::subsequence(all.clone(), 0..=n as usize);
        let votes = signers.prop_flat_map(move |signers| {
            let vote = |v| {
                let lens = len.saturating_sub(5) as usize..len as usize + 9;
                (Just(v), prop::collection::vec(any::<bool>(), lens))
            };
            signers.into_iter().map(vote).collect::<Vec<_>>()
        });
        let subset = prop::sample::subsequence(all, 0..=n.min(8) as usize);
        let members = prop::collection::vec(subset, len as usize);
        (Just(n), votes, Just(len), members)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn words_agree_with_bits((validators, votes, len, members) in cases()) {
        let owned = bitmaps(&votes);
        let votes_by_ref = borrowed(&owned);
        for rule in ThresholdRule::ALL {
            let derived = canonical(&votes_by_ref, len, validators, rule, &members);
            let bits: Vec<_> = (0..len).map(|i| derived.get(i)).collect();
            prop_assert_eq!(bits, expected(&votes, len, validators, rule, &members), "{}", rule);
            // Padding is zero: otherwise the strict decoder would reject the bytes.
            prop_assert_eq!(Bitmap::from_bytes(len, derived.as_bytes()), Ok(derived));
        }
        let said = |i: u32| owned.iter().filter(|(_, bitmap)| bitmap.get(i)).count() as u32;
        prop_assert_eq!(counts(&votes_by_ref, len), (0..len).map(said).collect::<Vec<_>>());
    }
}

/// A number of bits near the end of a word, of several words, or of one or two blocks.
fn around_a_border() -> impl Strategy<Value = u32> {
    let border = prop::sample::select(vec![0u32, 64, 128, 512, BLOCK_BITS, 2 * BLOCK_BITS]);
    (border, 0..=18u32).prop_map(|(border, more)| (border + more).saturating_sub(9))
}

/// A vote with its own length, in which few, half or most of the bits are set.
fn vote() -> impl Strategy<Value = Bitmap> {
    let eighths = prop::sample::select(vec![1u64, 4, 7]);
    (around_a_border(), any::<u64>(), eighths).prop_map(|(len, mut state, eighths)| {
        Bitmap::from_fn(len, |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 61 < eighths
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_threshold_is_exact_at_every_border(
        len in around_a_border(),
        votes in prop::collection::vec(vote(), 0..70),
    ) {
        let votes: Vec<_> = (0..).zip(&votes).collect();
        let said = |i: u32| votes.iter().filter(|(_, vote)| vote.get(i)).count() as u32;
        let expected: Vec<_> = (0..len).map(said).collect();
        prop_assert_eq!(&counts(&votes, len), &expected);
        for need in 0..=votes.len() as u32 + 1 {
            let reached = Bitmap::from_fn(len, |i| expected[i as usize] >= need);
            let derived = at_least(need, &votes, len);
            prop_assert_eq!(derived, reached, "{} of {}", need, votes.len());
        }
    }
}

#[test]
fn every_count_is_compared_exactly_with_every_threshold() {
    // Runner i is seen by exactly i of n validators.
    for n in [1u32, 2, 3, 4, 7, 8, 31, 32, 33, 100] {
        let owned: Vec<_> = (0..n).map(|v| (v, Bitmap::from_fn(n + 1, |i| v < i))).collect();
        let votes = borrowed(&owned);
        assert_eq!(counts(&votes, n + 1), (0..=n).collect::<Vec<_>>());
        for need in 0..=n + 2 {
            let reached = at_least(need, &votes, n + 1);
            assert_eq!(reached, Bitmap::from_fn(n + 1, |i| i >= need), "{need} of {n}");
        }
    }
}

#[test]
fn no_votes_no_runners() {
    for rule in ThresholdRule::ALL {
        let members = vec![vec![0, 1, 2]; 100];
        assert_eq!(canonical(&[], 100, 4, rule, &members), Bitmap::new(100));
        assert_eq!(canonical(&[], 100, 0, rule, &[]), Bitmap::new(100));
        assert_eq!(
            canonical(&[(0, &Bitmap::from_fn(9, |_| true))], 0, 1, rule, &[]),
            Bitmap::new(0)
        );
    }
}

#[test]
fn thresholds_and_quorums() {
    let rows: Vec<_> = [0, 1, 2, 3, 4, 5, 6, 7, 10, 100].map(|n| (quorum(n), of(n))).to_vec();
    let expected =
        [(0, 1), (1, 1), (2, 1), (3, 1), (3, 2), (4, 2), (5, 2), (5, 3), (7, 4), (67, 34)];
    assert_eq!(rows, expected);
    assert_eq!((quorum(u32::MAX), of(u32::MAX)), (2_863_311_531, 1_431_655_765));
}

#[test]
fn visibility_is_the_share_the_specification_names() {
    // §5: certain for n ≤ 6 and n = 9, 71 % at 7, half at 10, none at 16; 17 and 18, whose k
    // is one more, still see a little.
    let share = |n: u32| {
        let k = super::super::subset::size(n as usize) as u32;
        let (visible, all) = visibility(n, k, of(n)).expect("small numbers");
        (visible * 100 / all) as u32
    };
    assert_eq!([1, 2, 3, 4, 5, 6, 9].map(share), [100; 7]);
    assert_eq!([7, 10, 16, 17, 18, 19, 40, 100].map(share), [71, 50, 0, 7, 9, 0, 0, 0]);
    assert_eq!(visibility(4, 5, 1), None);
    assert_eq!(visibility(u32::MAX, 8, 1), None);
}

#[test]
fn rules_have_names() {
    for rule in ThresholdRule::ALL {
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
    let error = "majority".parse::<ThresholdRule>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "`majority` is not a threshold rule: expected committee, quorum or subset"
    );
}

//! Proofs against a map of entries, and forged proofs against the check.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const KEY: usize = 4;
const PAGE: usize = 40;

type Key = [u8; KEY];
type Trie = Pages<KEY, PAGE>;
type Model = BTreeMap<Key, Vec<u8>>;

/// Keys in which few digits vary, early and late ones, so that keys collide and branches skip
/// digits.
fn key() -> impl Strategy<Value = Key> {
    (0u8..4, 0u8..3, 0u8..2, 0u8..8).prop_map(|(a, b, c, d)| [a << 6, b, c * 7, d << 2])
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(Vec::new()), prop::collection::vec(any::<u8>(), 1..60)]
}

/// Insertions and, for `None`, removals.
fn changes() -> impl Strategy<Value = Vec<(Key, Option<Vec<u8>>)>> {
    let change = prop_oneof![3 => body().prop_map(Some), 2 => Just(None)];
    prop::collection::vec((key(), change), 0..120)
}

fn built(changes: Vec<(Key, Option<Vec<u8>>)>) -> (Trie, Model) {
    let (mut trie, mut model) = (Trie::default(), Model::new());
    for (key, change) in changes {
        match change {
            Some(body) => {
                trie.insert(&key, &body);
                model.insert(key, body);
            }
            None => {
                trie.remove(&key);
                model.remove(&key);
            }
        }
    }
    (trie, model)
}

/// The trie built from the same entries in ascending order.
fn rebuilt(model: &Model) -> Trie {
    let mut trie = Trie::default();
    for (key, body) in model {
        trie.insert(key, body);
    }
    trie
}

fn shows(trie: &Trie, model: &Model, low: Key, high: Key) {
    let proof = trie.prove(&low, &high, usize::MAX).expect("it has no bound");
    let shown = check(&proof, &low, &high).expect("it is a proof");
    assert_eq!(shown.root, trie.root());
    let expected = model.range(low..=high).map(|(key, body)| (key, body.as_slice()));
    assert!(shown.records.into_iter().eq(expected), "{low:?} to {high:?}");
}

proptest! {
    #[test]
    fn every_range_and_every_key_is_shown_as_it_is(
        changes in changes(),
        strangers in prop::collection::vec(any::<Key>(), 8),
        ranges in prop::collection::vec((key(), key()), 8),
    ) {
        let (trie, model) = built(changes);
        prop_assert_eq!(trie.root(), rebuilt(&model).root());
        for key in model.keys() {
            shows(&trie, &model, *key, *key);
        }
        for (a, b) in ranges {
            shows(&trie, &model, a, a);
            shows(&trie, &model, a.min(b), a.max(b));
        }
        for stranger in strangers {
            shows(&trie, &model, stranger, stranger);
        }
        shows(&trie, &model, [0; KEY], [255; KEY]);
    }

    #[test]
    fn what_shows_the_root_shows_all_of_the_range(
        changes in changes(),
        (a, b) in (key(), key()),
        (c, d) in (key(), key()),
    ) {
        // A proof of another range either proves this one correctly, or is refused.
        let (trie, model) = built(changes);
        let (low, high) = (a.min(b), a.max(b));
        let other = trie.prove(&c.min(d), &c.max(d), usize::MAX).expect("no bound");
        if let Ok(shown) = check(&other, &low, &high) {
            let expected = model.range(low..=high).map(|(key, body)| (key, body.as_slice()));
            prop_assert!(shown.records.into_iter().eq(expected));
        }
    }

    #[test]
    fn no_change_shows_another_thing_of_the_same_root(
        changes in changes(),
        (a, b) in (key(), key()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..3),
    ) {
        let (trie, _) = built(changes);
        let (low, high) = (a.min(b), a.max(b));
        let proof = trie.prove(&low, &high, usize::MAX).expect("no bound");
        let mut forged = proof.clone();
        for (place, byte, how) in edits {
            let at = place.index(forged.len().max(1));
            match how {
                0 if !forged.is_empty() => forged[at] ^= byte.max(1),
                1 => forged.insert(at, byte),
                2 if !forged.is_empty() => drop(forged.remove(at)),
                _ => forged.truncate(at),
            }
        }
        if forged != proof {
            let root = check(&forged, &low, &high).map(|shown| shown.root);
            prop_assert_ne!(root, Ok(trie.root()));
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = check(&bytes, &[0; KEY], &[255; KEY]);
    }
}

/// A trie in which a branch of the root has branches below it.
fn sample() -> Trie {
    let mut trie = Trie::default();
    for n in 0..64u8 {
        trie.insert(&[n << 2, 0, n, 1], &[n; 9]);
    }
    trie
}

#[test]
fn a_part_of_the_range_cannot_be_hidden_and_no_other_part_shown() {
    let trie = sample();
    let (low, high) = ([0x40, 0, 0, 0], [0x4f, 255, 255, 255]);
    let narrow = trie.prove(&low, &low, usize::MAX).expect("no bound");
    let wide = trie.prove(&low, &high, usize::MAX).expect("no bound");
    assert_eq!(check(&wide, &low, &high).map(|shown| shown.records.len()), Ok(4));
    assert_eq!(check(&narrow, &low, &high), Err(TreeError::Hidden));
    assert_eq!(check(&wide, &low, &low), Err(TreeError::Needless));
    // A tree that is hidden completely is one hash, which shows nothing.
    let hidden = [&[HIDDEN], trie.root().0.as_slice()].concat();
    assert!(matches!(check(&hidden, &low, &high), Err(TreeError::Malformed { at: 0, .. })));
    assert!(check(&wide[..wide.len() - 1], &low, &high).is_err());
}

#[test]
fn the_depth_is_the_keys_not_the_sender_s() {
    let mut bytes = Vec::new();
    for digit in 0..4 * KEY as u8 {
        bytes.extend_from_slice(&[OPEN_BRANCH, digit, 0b11]);
    }
    let at = bytes.len();
    let malformed =
        |at| move |error| matches!(error, TreeError::Malformed { at: got, .. } if got == at);
    assert!(check(&bytes, &[0; KEY], &[0; KEY]).is_err_and(malformed(at)));
    for digit in [0, 4 * KEY as u8 - 1, 4 * KEY as u8, 255] {
        let deeper = [bytes.as_slice(), &[OPEN_BRANCH, digit, 0b11]].concat();
        assert!(check(&deeper, &[0; KEY], &[0; KEY]).is_err_and(malformed(at)), "{digit}");
    }
    for bitmap in [0, 1, 8, 16, 0b10001, 255] {
        let lonely = [OPEN_BRANCH, 0, bitmap];
        assert!(check(&lonely, &[0; KEY], &[0; KEY]).is_err_and(malformed(0)), "{bitmap}");
    }
}

#[test]
fn a_claimed_length_allocates_nothing() {
    let page = [&[OPEN_PAGE], [255; 4].as_slice(), &[0; 8]].concat();
    assert!(matches!(check::<KEY>(&page, &[0; 4], &[0; 4]), Err(TreeError::Malformed { .. })));
    let record = [[255; 4].as_slice(), &[0; 4], &[1]].concat();
    let page = [&[OPEN_PAGE], (record.len() as u32).to_be_bytes().as_slice(), &record].concat();
    assert!(matches!(check::<KEY>(&page, &[0; 4], &[0; 4]), Err(TreeError::Malformed { .. })));
}

#[test]
fn a_proof_ends_where_its_bound_is() {
    let trie = sample();
    let (low, high) = ([0; KEY], [255; KEY]);
    let whole = trie.prove(&low, &high, usize::MAX).expect("no bound");
    assert_eq!(trie.prove(&low, &high, whole.len()), Ok(whole.clone()));
    let limit = whole.len() - 1;
    assert_eq!(trie.prove(&low, &high, limit), Err(Oversize { limit }));
    assert_eq!(Trie::default().prove(&low, &high, 1), Ok(vec![NOTHING]));
}

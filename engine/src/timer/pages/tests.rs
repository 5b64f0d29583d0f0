//! The trie against an ordered map.

use super::*;
use std::{array, collections::BTreeMap};

const KEY_BYTES: usize = 32;
const PAGE_BYTES: usize = 1_024;

type Key = [u8; KEY_BYTES];
type Pages = super::Pages<KEY_BYTES, PAGE_BYTES>;
type Model = BTreeMap<Key, Vec<u8>>;

/// The root over the same contents, built at once: the definition of the shape.
fn expected(model: &Model) -> Hash {
    let record = |(key, body): (&Key, &Vec<u8>)| {
        [&(body.len() as u32).to_be_bytes(), key.as_slice(), body].concat()
    };
    let records: Vec<u8> = model.iter().flat_map(record).collect();
    if records.is_empty() {
        Hash::ZERO
    } else {
        PageNode::<KEY_BYTES, PAGE_BYTES>::build(records).hash()
    }
}

fn check(pages: &Pages, model: &Model) {
    assert_eq!(pages.root(), expected(model));
    assert_eq!(pages.len(), model.len());
    assert!(pages.iter().eq(model.iter().map(|(key, body)| (key, body.as_slice()))));
}

fn random(n: u64) -> Key {
    keccak256(&[&n.to_be_bytes()]).0
}

#[test]
fn contents_alone_decide() {
    let (mut pages, mut model) = (Pages::default(), Model::new());
    for step in 0..6_000u64 {
        let draw = random(step);
        // 512 keys, half of which differ late; bodies from empty to larger than a page.
        let mut key = random(u64::from(draw[0]));
        if draw[1] < 128 {
            key[..12].fill(7);
        }
        let body = vec![draw[2]; [0, 9, 70, 300, 2_000][usize::from(draw[3] % 5)]];
        let before = (pages.clone(), pages.root());
        if draw[4] < [96, 200][usize::from(step > 3_000)] {
            assert_eq!(pages.remove(&key), model.remove(&key), "step {step}");
        } else {
            assert_eq!(pages.insert(&key, &body), model.insert(key, body), "step {step}");
        }
        assert_eq!(before.0.root(), before.1, "a clone stays what it was");
        assert_eq!(pages.get(&key), model.get(&key).map(Vec::as_slice));
        if step % 50 == 0 {
            check(&pages, &model);
            let mut from = random(step + 1);
            from[0] = draw[5];
            for from in [from, key, [0; KEY_BYTES], [255; KEY_BYTES]] {
                let expected = model.range(from..).map(|(key, body)| (key, body.as_slice()));
                assert!(pages.range_from(from).eq(expected), "step {step}");
            }
        }
    }
    for key in model.keys() {
        pages.remove(key);
    }
    check(&pages, &Model::new());
}

#[test]
fn the_deepest_trie_holds() {
    // Each key differs from zero one digit later: hashes never do that, but the worst case is
    // bounded.
    let key = |digit: usize| {
        let mut key = [0; KEY_BYTES];
        key[digit / 4] |= 0x80 >> (digit % 4 * 2);
        key
    };
    let keys: Vec<Key> = (0..128).map(key).chain([[0; KEY_BYTES]]).collect();
    let (mut pages, mut model) = (Pages::default(), Model::new());
    for key in &keys {
        let body = vec![1; PAGE_BYTES];
        pages.insert(key, &body);
        model.insert(*key, body);
    }
    check(&pages, &model);
    for key in &keys {
        assert_eq!(pages.remove(key), model.remove(key));
        check(&pages, &model);
    }
}

#[test]
fn keys_are_found_by_their_first_bytes() {
    let mut pages = Pages::default();
    let keys: Vec<Key> = (0..2_000)
        .map(|n| {
            let mut key = random(n);
            key[..8].copy_from_slice(&random(n % 100)[..8]);
            key
        })
        .collect();
    for key in &keys {
        pages.insert(key, b"body");
    }
    for n in 0..101 {
        let prefix: [u8; 8] = array::from_fn(|i| random(n)[i]);
        let mut expected: Vec<_> = keys.iter().filter(|key| key.starts_with(&prefix)).collect();
        expected.sort_unstable();
        let found: Vec<_> = pages.with_prefix(prefix).map(|(key, _)| key).collect();
        assert_eq!(found, expected);
        assert_eq!(found.len(), if n < 100 { 20 } else { 0 });
    }
}

#[test]
fn a_root_is_frozen() {
    let mut pages = Pages::default();
    for n in 0..100u64 {
        pages.insert(&random(n), &n.to_be_bytes());
    }
    let root = "0xb31a63285a9f6d97dda32a7d0bae51afc69a4692d954fb82cf3f5d5fb8d2124f";
    assert_eq!(pages.root().to_string(), root);
}

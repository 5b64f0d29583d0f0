//! The map against one that is rebuilt from scratch, and its proofs against forged ones.

use super::*;
use crate::primitives::codec::Writer;
use proptest::prelude::*;
use std::{cell::Cell, collections::BTreeMap};

type Model = BTreeMap<u64, Vec<u8>>;

/// The root once more, computed only from the paths and hashes of the leaves.
fn fold(bit: usize, leaves: &[(Hash, Hash)]) -> Hash {
    match leaves {
        [] => Hash::ZERO,
        [(_, leaf)] => *leaf,
        _ => {
            let is_set = |path: &Hash| path.0[bit / 8] & (0x80 >> (bit % 8)) != 0;
            let (right, left): (Vec<_>, Vec<_>) = leaves.iter().partition(|(path, _)| is_set(path));
            if left.is_empty() || right.is_empty() {
                return fold(bit + 1, leaves);
            }
            let (left, right) = (fold(bit + 1, &left), fold(bit + 1, &right));
            keccak256(&[&[1, bit as u8], &left.0, &right.0])
        }
    }
}

fn expected_leaf<V: Encode>(path: Hash, value: &V) -> (Hash, Hash) {
    (path, keccak256(&[&[0], &path.0, &keccak256(&[&to_vec(value)]).0]))
}

fn expected_root(model: &Model) -> Hash {
    let leaf = |(key, value)| expected_leaf(keccak256(&[&to_vec(key)]), value);
    fold(0, &model.iter().map(leaf).collect::<Vec<_>>())
}

#[derive(Debug, Clone)]
enum Op {
    Insert(u64, Vec<u8>),
    Remove(u64),
    Root,
    Fork,
}

/// Few keys, so that operations meet, with short and long encodings.
fn key() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..40, (0u64..40).prop_map(|i| i << 40)]
}

fn ops(len: usize) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (key(), prop::collection::vec(any::<u8>(), 0..4)).prop_map(|(k, v)| Op::Insert(k, v)),
        4 => key().prop_map(Op::Remove),
        1 => Just(Op::Root),
        1 => Just(Op::Fork),
    ];
    prop::collection::vec(op, 0..len)
}

fn check(map: &Map<u64, Vec<u8>>, model: &Model) {
    order::check(&map.order);
    assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
    assert!(map.iter().eq(model.iter()), "{map:?} {model:?}");
    assert_eq!(map.root(), expected_root(model));
}

proptest! {
    #[test]
    fn behaves_as_a_map_and_forks_do_not_meet(ops in ops(120)) {
        let (mut map, mut model) = (Map::new(), Model::new());
        let mut forks = Vec::new();
        for op in ops {
            match op {
                Op::Insert(k, v) => prop_assert_eq!(map.insert(k, v.clone()), model.insert(k, v)),
                Op::Remove(k) => prop_assert_eq!(map.remove(&k), model.remove(&k)),
                Op::Root => prop_assert_eq!(map.root(), expected_root(&model)),
                Op::Fork => forks.push((map.clone(), model.clone())),
            }
        }
        forks.push((map, model));
        for (map, model) in &forks {
            check(map, model);
        }
    }

    #[test]
    fn finds_and_ranges(ops in ops(80), from in key()) {
        let (mut map, mut model) = (Map::new(), Model::new());
        for op in ops {
            if let Op::Insert(k, v) = op {
                map.insert(k, v.clone());
                model.insert(k, v);
            }
        }
        prop_assert_eq!(map.get(&from), model.get(&from));
        prop_assert_eq!(map.contains_key(&from), model.contains_key(&from));
        prop_assert!(map.range_from(&from).eq(model.range(from..)));
    }

    #[test]
    fn the_root_knows_contents_and_no_history(
        entries in prop::collection::btree_map(any::<u64>(), any::<u64>(), 0..60),
        others in prop::collection::btree_set(any::<u64>(), 0..20),
        order in any::<u64>(),
    ) {
        let straight: Map<u64, u64> = entries.iter().map(|(k, v)| (*k, *v)).collect();
        let mut shuffled: Vec<_> = entries.iter().map(|(k, v)| (*k, *v)).collect();
        shuffled.sort_by_key(|(k, _)| keccak256(&[&order.to_be_bytes(), &k.to_be_bytes()]));
        // Keys are added and removed, values change, and roots are computed in between.
        let mut crooked: Map<u64, u64> = others.iter().map(|k| (*k, 0)).collect();
        for (k, v) in shuffled {
            crooked.insert(k, v.wrapping_add(1));
            crooked.root();
            crooked.insert(k, v);
        }
        for k in others.iter().filter(|k| !entries.contains_key(k)) {
            crooked.remove(k);
        }
        prop_assert_eq!(crooked.root(), straight.root());
        prop_assert_eq!(&crooked, &straight);
    }

    #[test]
    fn removing_what_was_inserted_restores_the_root(
        entries in prop::collection::btree_map(any::<u64>(), any::<u64>(), 0..60),
        key: u64,
        value: u64,
    ) {
        let mut map: Map<u64, u64> = entries.into_iter().filter(|(k, _)| *k != key).collect();
        let before = map.root();
        map.insert(key, value);
        prop_assert_ne!(map.root(), before);
        prop_assert_eq!(map.remove(&key), Some(value));
        prop_assert_eq!(map.root(), before);
    }

    #[test]
    fn proofs_hold_and_tampered_ones_do_not(
        entries in prop::collection::btree_map(any::<u64>(), any::<u64>(), 1..60),
        pick in any::<prop::sample::Index>(),
        stranger: u64,
        flip in any::<prop::sample::Index>(),
    ) {
        let map: Map<u64, u64> = entries.iter().map(|(k, v)| (*k, *v)).collect();
        let (key, value) = map.iter().nth(pick.index(map.len())).unwrap();
        let (root, proof) = (map.root(), map.prove(key).unwrap());
        prop_assert!(proof.verify(root, key, value));
        prop_assert!(!proof.verify(root, key, &value.wrapping_add(1)));
        prop_assert!(!proof.verify(root, &key.wrapping_add(1), value));
        let mut other = root;
        other.0[flip.index(32)] ^= 1 << flip.index(8);
        prop_assert!(!proof.verify(other, key, value));
        if !entries.contains_key(&stranger) {
            prop_assert_eq!(map.prove(&stranger), None);
        }
        for at in 0..proof.steps.len() {
            let check = |tamper: &dyn Fn(&mut Vec<Step>)| {
                let mut tampered = proof.clone();
                tamper(&mut tampered.steps);
                assert!(!tampered.verify(root, key, value), "{tampered:?}");
            };
            check(&|steps| steps[at].sibling.0[flip.index(32)] ^= 1 << flip.index(8));
            check(&|steps| steps[at].bit = steps[at].bit.wrapping_add(1));
            check(&|steps| { steps.remove(at); });
            check(&|steps| steps.insert(at, steps[at]));
            check(&|steps| steps.truncate(at));
        }
    }
}

proptest! {
    #[test]
    fn absence_holds_and_no_key_that_is_there_is_absent(
        entries in prop::collection::btree_map(0u64..200, any::<u64>(), 0..60),
        stranger in 0u64..400,
        flip in any::<prop::sample::Index>(),
    ) {
        let map: Map<u64, u64> = entries.iter().map(|(k, v)| (*k, *v)).collect();
        let root = map.root();
        let Some(absence) = map.prove_absent(&stranger) else {
            prop_assert!(entries.contains_key(&stranger));
            return Ok(());
        };
        prop_assert!(!entries.contains_key(&stranger));
        prop_assert_eq!(absence.root(&stranger), Some(root));
        for key in entries.keys() {
            prop_assert_ne!(absence.root(key), Some(root), "{} is there", key);
        }
        let Absence::Occupied(neighbour, proof) = absence else {
            prop_assert!(entries.is_empty());
            return Ok(());
        };
        let forged = |neighbour, steps| {
            let forged = Absence::Occupied(neighbour, InclusionProof { steps });
            forged.root(&stranger) == Some(root)
        };
        let bit = |mut hash: Hash| {
            hash.0[flip.index(32)] ^= 1 << flip.index(8);
            hash
        };
        let steps = proof.steps;
        let other = Neighbour { path: bit(neighbour.path), ..neighbour };
        prop_assert!(!forged(other, steps.clone()));
        let other = Neighbour { value: bit(neighbour.value), ..neighbour };
        prop_assert!(!forged(other, steps.clone()));
        for at in 0..steps.len() {
            let mut changed = steps.clone();
            changed[at].sibling = bit(changed[at].sibling);
            prop_assert!(!forged(neighbour, changed));
            prop_assert!(!forged(neighbour, steps[at + 1..].to_vec()));
            prop_assert!(!forged(neighbour, steps[..at].to_vec()));
        }
        if let Some(last) = steps.len().checked_sub(1) {
            // A sibling's place: the stranger's path does not lead to this leaf.
            let mut turned = steps.clone();
            turned[last].bit ^= 1;
            prop_assert!(!forged(neighbour, turned));
        }
        prop_assert!(entries.is_empty() || Absence::Empty.root(&stranger) != Some(root));
    }
}

#[test]
fn the_root_of_a_small_map_is_frozen() {
    let mut map: Map<String, u64> = Map::new();
    assert_eq!(map.root(), Hash::ZERO);
    for (key, value) in [("ant", 1), ("bee", 2), ("cow", 3)] {
        map.insert(key.to_owned(), value);
    }
    let root = "0x353d9ace9ddf9f784693e3758ffad3eb66c0f65d10426373f535a2555dc82341";
    assert_eq!(map.root().to_string(), root);
}

#[test]
fn a_leaf_cannot_pass_for_a_branch() {
    // A proof without steps shows a map of one entry, whose root is the leaf.
    let one: Map<u64, u64> = [(7, 8)].into_iter().collect();
    let proof = one.prove(&7).expect("7 is in");
    assert_eq!(proof.steps, []);
    assert!(proof.verify(one.root(), &7u64, &8u64));
    let two: Map<u64, u64> = [(7, 8), (9, 10)].into_iter().collect();
    assert!(!proof.verify(two.root(), &7u64, &8u64));
}

#[test]
fn a_proof_descends() {
    // Hashes that match are not enough: no map has branches in this order, and without this check a
    // proof could be as long as its sender likes.
    let (path, leaf) = expected_leaf(keccak256(&[&to_vec(&7u64)]), &8u64);
    let check = |bits: &[u8], expected: bool| {
        let steps = bits.iter().map(|bit| Step { bit: *bit, sibling: Hash([9; 32]) });
        let proof = InclusionProof { steps: steps.collect() };
        let root = proof.steps.iter().fold(leaf, |hash, step| {
            let is_set = path.0[usize::from(step.bit / 8)] & (0x80 >> (step.bit % 8)) != 0;
            branch(step.bit, if is_set { [step.sibling, hash] } else { [hash, step.sibling] })
        });
        assert_eq!(proof.verify(root, &7u64, &8u64), expected, "{bits:?}");
    };
    check(&[255, 5, 3, 0], true);
    check(&[3, 5], false);
    check(&[5, 5], false);
}

#[test]
fn keys_in_order_make_no_list() {
    for keys in [(0..10_000u64).collect::<Vec<_>>(), (0..10_000).rev().collect()] {
        let map: Map<u64, u64> = keys.into_iter().map(|k| (k, k)).collect();
        // 1.44 log2 10,000 = 19.1
        assert!(order::check(&map.order) <= 19);
    }
}

#[test]
fn keys_stand_in_their_own_order_not_in_that_of_their_encodings() {
    let map: Map<String, u64> = [("b".to_owned(), 0), ("aa".to_owned(), 1)].into_iter().collect();
    assert_eq!(map.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["aa", "b"]);
}

#[test]
fn the_deepest_trie_holds() {
    // Each path leaves the path of zeros one bit later. No hash does that, but the worst is
    // bounded.
    let path = |bit: usize| {
        let mut path = Hash::ZERO;
        path.0[bit / 8] |= 0x80 >> (bit % 8);
        path
    };
    let paths: Vec<_> = (0..256).map(path).chain([Hash::ZERO]).collect();
    let mut root = None;
    for path in &paths {
        let entry = Entry { key: 0u64, value: 7u64, path: *path, hash: OnceLock::new() };
        trie::insert(&mut root, Arc::new(entry));
    }
    let leaves: Vec<_> = paths.iter().map(|path| expected_leaf(*path, &7u64)).collect();
    let hash = |root: &Option<trie::Node<u64, u64>>| root.as_ref().map(trie::Node::hash);
    assert_eq!(hash(&root), Some(fold(0, &leaves)));
    for (i, path) in paths.iter().enumerate() {
        trie::remove(&mut root, path);
        let rest = &leaves[i + 1..];
        assert_eq!(hash(&root), (!rest.is_empty()).then(|| fold(0, rest)));
    }
}

thread_local! {
    static ENCODED: Cell<u32> = const { Cell::new(0) };
}

#[derive(Debug, Clone)]
struct Counted(u64);

impl Encode for Counted {
    fn encode(&self, w: &mut Writer) {
        ENCODED.set(ENCODED.get() + 1);
        w.u64(self.0);
    }
}

#[test]
fn a_root_hashes_only_what_changed() {
    let check = |expected: u32, map: &Map<u64, Counted>| {
        let root = map.root();
        assert_eq!(ENCODED.replace(0), expected);
        assert_eq!((map.root(), ENCODED.replace(0)), (root, 0));
    };
    let mut map: Map<u64, Counted> = (0..1_000).map(|k| (k, Counted(k))).collect();
    check(1_000, &map);
    let mut fork = map.clone();
    fork.insert(500, Counted(0));
    fork.remove(&501);
    check(1, &fork);
    check(0, &map);
    map.insert(2_000, Counted(0));
    check(1, &map);
}

#[test]
fn maps_go_between_threads() {
    fn shared<T: Send + Sync>(value: T) -> T {
        value
    }
    let map = shared((0..100u64).map(|k| (k, k)).collect::<Map<_, _>>());
    let roots = std::thread::scope(|scope| {
        [(); 2].map(|()| scope.spawn(|| map.root())).map(|thread| thread.join().unwrap())
    });
    assert_eq!(roots[0], roots[1]);
}

//! The queue against a map of timers: roots, ranges and proofs, in any order of changes.

use super::*;
use crate::{
    primitives::{
        Wei,
        codec::{from_slice, to_vec},
    },
    timer::{book, heights},
};
use proptest::prelude::*;
use std::collections::BTreeMap;

type Model = BTreeMap<Hash, Timer>;

fn id(n: u64) -> Hash {
    keccak256(&[&n.to_be_bytes()])
}

fn timer(n: u64, height: u64) -> Timer {
    let actor = Address([n as u8 % 3; 20]);
    Timer {
        id: id(n),
        seq: 0,
        actor,
        height: Height::new(height),
        payload: vec![n as u8; n as usize % 90],
        handler: None,
        fee_payer: actor,
        gas_limit: 100_000,
        cell_limit: 64,
        promised: None,
        expires_at: Height::new(height + 100),
        max_fee_per_cycle: Wei::new(5_000),
        max_priority_fee_per_cycle: Wei::ZERO,
        scheduled_at: Height::GENESIS,
        gba: None,
        bid: None,
    }
}

#[derive(Debug, Clone)]
enum Op {
    Schedule(u64, u64),
    Remove(u64),
    /// Removes a timer and schedules it for another height.
    Move(u64, u64),
    Extend(u64),
    Maintain(u64),
}

fn height() -> impl Strategy<Value = u64> {
    prop_oneof![1u64..30, 1u64..4_000_000, Just(u64::MAX - 100)]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0u64..80, height()).prop_map(|(n, height)| Op::Schedule(n, height)),
        3 => (0u64..80).prop_map(Op::Remove),
        2 => (0u64..80, height()).prop_map(|(n, height)| Op::Move(n, height)),
        1 => (0u64..80).prop_map(Op::Extend),
        1 => (0u64..900).prop_map(Op::Maintain),
    ]
}

fn apply(queue: &mut Queue, model: &mut Model, op: Op) {
    let mut schedule = |queue: &mut Queue, n, height| {
        let mut timer = timer(n, height);
        timer.seq = queue.schedule(timer.clone());
        model.insert(timer.id, timer);
    };
    match op {
        Op::Schedule(n, height) => schedule(queue, n, height),
        Op::Move(n, height) if queue.contains(&id(n)) => {
            queue.remove(&id(n));
            schedule(queue, n, height);
        }
        Op::Move(..) => {}
        Op::Remove(n) => assert_eq!(queue.remove(&id(n)), model.remove(&id(n))),
        Op::Extend(n) => {
            if let Some(timer) = model.get_mut(&id(n)) {
                timer.expires_at = timer.expires_at.after(1);
                queue.replace(timer);
            }
        }
        Op::Maintain(epoch) => {
            let before = queue.epoch;
            let near = queue.maintain(Height::new(epoch * EPOCH_BLOCKS));
            let mut expected: Vec<_> = model
                .values()
                .filter(|timer| (beyond(before)..beyond(queue.epoch)).contains(&timer.height))
                .cloned()
                .collect();
            expected.sort_unstable_by_key(|timer| (timer.height, timer.id));
            assert_eq!(near, expected);
        }
    }
}

/// Checks all answers of the queue against the map.
fn check(queue: &Queue, model: &Model) {
    let commitment = queue.commitment();
    let mut scratch = Queue { next_seq: queue.next_seq, epoch: queue.epoch, ..Queue::default() };
    for timer in model.values() {
        scratch.book.insert(timer);
        scratch.enter(timer);
    }
    assert_eq!((scratch.commitment(), scratch.overflow), (commitment, queue.overflow));
    let read: Queue = from_slice(&to_vec(queue)).expect("as written");
    assert_eq!((read.commitment(), read.overflow), (commitment, queue.overflow));

    for n in 0..90 {
        let tree = queue.prove(&id(n), usize::MAX).expect("no bound");
        let (root, body) = book::check(&tree, &id(n)).expect("a proof");
        assert_eq!(root, commitment.book);
        let found = body.map(|body| book::read(id(n), &mut Reader::new(body)).expect("a body"));
        assert_eq!(found.as_ref(), model.get(&id(n)));
    }
    let mut all: Vec<_> = model.values().map(|timer| (timer.height, timer.id)).collect();
    all.sort_unstable();
    for (from, to) in
        [(0, u64::MAX), (0, 0), (5, 9), (1, 3_999_999), (29, 29), (u64::MAX, u64::MAX)]
    {
        let (from, to) = (Height::new(from), Height::new(to));
        let expected: Vec<_> =
            all.iter().copied().filter(|(height, _)| (from..=to).contains(height)).collect();
        assert!(queue.range(from, to).eq(expected.iter().copied()));
        let tree = queue.prove_range(from, to, usize::MAX).expect("no bound");
        assert_eq!(heights::check(&tree, from, to), Ok((commitment.heights, expected)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn roots_ranges_and_proofs_follow_from_the_timers(
        ops in prop::collection::vec(op(), 0..160),
    ) {
        let (mut queue, mut model) = (Queue::default(), Model::new());
        let half = ops.len() / 2;
        for (n, op) in ops.into_iter().enumerate() {
            if n == half {
                check(&queue, &model);
            }
            apply(&mut queue, &mut model, op);
        }
        check(&queue, &model);
        for id in model.keys() {
            queue.remove(id);
        }
        check(&queue, &Model::new());
        prop_assert_eq!(queue.commitment().heights, Hash::ZERO);
    }
}

/// Number of nodes hashed for the root, in both trees.
fn hashed(queue: &Queue) -> u64 {
    super::super::pages::HASHED.set(0);
    queue.root();
    super::super::pages::HASHED.get()
}

#[test]
fn a_block_hashes_what_it_changed() {
    const TIMERS: u64 = 100_000;
    const FIRED: u64 = 1_000;
    let mut queue = Queue::default();
    for n in 0..TIMERS {
        // A thousand at one height, the others anywhere.
        let height = if n < FIRED { 77 } else { 100 + n * 7_919 % 2_000_000 };
        queue.schedule(timer(n, height));
    }
    let all = hashed(&queue);
    assert!(all > TIMERS / 12, "{all}: pages and branches of two trees");
    assert_eq!(hashed(&queue), 0, "once");

    let mut fork = queue.clone();
    fork.remove(&id(50_000));
    let one = hashed(&fork);
    assert!(one <= 40, "{one}: a path of each tree");

    let fired: Vec<_> = queue.range(Height::new(77), Height::new(77)).map(|(_, id)| id).collect();
    assert_eq!(fired.len() as u64, FIRED);
    for id in &fired {
        queue.remove(id);
    }
    let changed = hashed(&queue);
    // Their ids are spread over one tree; in the other they are neighbours, and a path remains at
    // their place.
    assert!(changed < all / 4 && changed < 4 * FIRED, "{changed} of {all}");
}

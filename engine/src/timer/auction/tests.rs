//! Weights compared with a literal computation of the four terms.

use super::*;
use crate::primitives::codec::{from_slice, to_vec};
use proptest::prelude::*;
use std::collections::BTreeMap;

const LANE: u64 = 1_000;
const RULES: Weighting =
    Weighting { lambda: 200_000, min: 500_000, max: 2_000_000, starvation_floor: 1_500_000 };

fn actor(n: u8) -> Address {
    Address([n; 20])
}

/// The standing of timers, each with its waiting time in blocks and its tip; the first `fires`
/// fire.
fn standing(timers: &[(u32, Option<u64>)], fires: usize, cycles: u64) -> Standing {
    let mut standing = Standing::default();
    for &(waited, tip) in timers {
        standing.note(waited, tip);
    }
    for &(waited, _) in &timers[..fires] {
        standing.fire(waited, cycles);
    }
    standing
}

#[test]
fn a_standing_counts_what_the_terms_ask_for() {
    let got = standing(&[(7, Some(5)), (0, None), (40, Some(9)), (6, Some(1))], 1, 30);
    let expected = Standing {
        due: 4,
        fresh: 1,
        tips: 15,
        late: 7 + 32 + 6,
        starved: 1,
        fired: 1,
        consumed: 30,
    };
    assert_eq!(got, expected);
}

#[test]
fn weights_follow_the_four_terms() {
    let mut auction = Auction::default();
    // One timer that fires at once and uses half the lane; two timers with a lower tip that wait.
    auction.record(
        LANE,
        [
            (actor(1), standing(&[(0, Some(10))], 1, 500)),
            (actor(2), standing(&[(0, Some(2)), (0, Some(4))], 0, 0)),
        ],
    );
    auction
        .record(LANE, [(actor(2), standing(&[(1, Some(2)), (1, Some(4)), (0, Some(0))], 1, 100))]);
    auction.rollover(&RULES);
    // 1: tip 1.0, success 1.0, lateness 0, thrift 0.75. 2: tip 0.5, success 1/3, lateness
    // 2/5/32, thrift 0.95.
    let blend = |score: u64| (800_000 * ONE + 200_000 * score) / ONE;
    let first = blend((1_000_000 + 1_000_000 + 750_000) / 4);
    let second = blend((500_000 + 333_333 + 12_500 + 950_000) / 4);
    assert_eq!((auction.weight(&actor(1)), auction.weight(&actor(2))), (first, second));
    assert_eq!(auction.weight(&actor(3)), START_WEIGHT);
}

#[test]
fn timers_that_are_carried_into_an_epoch_count_once() {
    let mut auction = Auction::default();
    auction.record(LANE, [(actor(1), standing(&[(0, Some(0)); 2], 0, 0))]);
    auction.rollover(&RULES);
    auction.record(LANE, [(actor(1), standing(&[(1, Some(0)); 2], 1, 0))]);
    auction.record(LANE, [(actor(1), standing(&[(2, Some(0)), (0, Some(0))], 1, 0))]);
    let tally = auction.tallies.get(&actor(1)).unwrap();
    assert_eq!((tally.due, tally.entered, tally.fired), (4, 3, 2));
}

#[test]
fn the_starved_are_lifted_and_everyone_stays_in_bounds() {
    let mut auction = Auction::default();
    for _ in 0..50 {
        auction.record(
            LANE,
            [
                (actor(1), standing(&[(7, None)], 0, 0)),
                (actor(2), standing(&[(6, Some(1))], 0, 0)),
                (actor(3), standing(&[(0, None)], 1, LANE)),
            ],
        );
        auction.rollover(&RULES);
    }
    assert_eq!(auction.weight(&actor(1)), RULES.starvation_floor);
    assert!((RULES.min..START_WEIGHT).contains(&auction.weight(&actor(2))));
    assert_eq!(auction.weight(&actor(3)), RULES.min);
}

#[test]
fn the_idle_come_back_to_one_and_hold_no_state() {
    let mut auction = Auction::default();
    auction.record(
        LANE,
        [(actor(1), standing(&[(9, None)], 0, 0)), (actor(2), standing(&[(0, None)], 0, 0))],
    );
    auction.rollover(&RULES);
    let fork = auction.clone();
    auction.rollover(&RULES);
    assert_eq!(auction.weight(&actor(1)), 1_400_000);
    for _ in 0..70 {
        auction.rollover(&RULES);
    }
    assert_eq!(auction, Auction::default());
    assert_eq!(fork.weight(&actor(1)), RULES.starvation_floor);
}

#[test]
fn what_is_stored_is_read_back() {
    let mut auction = Auction::default();
    auction.record(LANE, [(actor(1), standing(&[(9, Some(u64::MAX))], 1, 3))]);
    auction.rollover(&RULES);
    auction.record(LANE, [(actor(2), standing(&[(9, Some(u64::MAX))], 1, 3))]);
    let read: Auction = from_slice(&to_vec(&auction)).unwrap();
    assert_eq!(read, auction);
    assert_eq!(read.root(), auction.root());

    let check = |weight: Option<u64>, due: u64| {
        let weights = weight.map(|weight| (actor(1), weight)).into_iter().collect();
        let tallies =
            [(actor(1), AuctionTally { due, ..AuctionTally::default() })].into_iter().collect();
        from_slice::<Auction>(&to_vec(&Auction { weights, tallies, budget: 0 })).is_ok()
    };
    assert!(check(None, 1) && check(Some(RULES.max), 1));
    assert!(!check(None, 0));
    assert!(!check(Some(START_WEIGHT), 1));
}

/// A timer that is due in a block.
#[derive(Clone, Copy, Debug)]
struct Seen {
    waited: u32,
    tip: Option<u64>,
    fires: bool,
}

/// The timers that are due in each of an epoch's blocks, with the number of their actor.
type Blocks = Vec<Vec<(u8, Seen)>>;

fn blocks() -> impl Strategy<Value = Blocks> {
    let seen = (0u32..40, prop::option::of(0u64..9), any::<bool>());
    let seen = seen.prop_map(|(waited, tip, fires)| Seen { waited, tip, fires });
    prop::collection::vec(prop::collection::vec((0u8..4, seen), 0..12), 1..6)
}

/// `part` / `whole` in millionths.
fn millionths(part: usize, whole: usize) -> u64 {
    part as u64 * 1_000_000 / whole as u64
}

/// The actors' weights after an epoch that all begin at 1.0.
fn model(blocks: &Blocks) -> [u64; 4] {
    let of = |n: u8| -> Vec<(usize, Seen)> {
        let seen = blocks.iter().enumerate().flat_map(|(at, block)| {
            block.iter().filter(move |(m, _)| *m == n).map(move |(_, seen)| (at, *seen))
        });
        seen.collect()
    };
    let mean_tip = |timers: &[(usize, Seen)]| {
        let sum: u64 = timers.iter().filter_map(|(_, seen)| seen.tip).sum();
        sum.checked_div(timers.len() as u64)
    };
    let means: Vec<_> = (0..4).filter_map(|n| mean_tip(&of(n))).collect();
    [0, 1, 2, 3].map(|n| {
        let timers = of(n);
        let (Some(mean), Some(&(first, _))) = (mean_tip(&timers), timers.first()) else {
            return START_WEIGHT;
        };
        let entered = timers.iter().filter(|(at, seen)| *at == first || seen.waited == 0).count();
        let fired = timers.iter().filter(|(_, seen)| seen.fires).count();
        let late: u32 = timers.iter().map(|(_, seen)| seen.waited.min(32)).sum();
        let budget = LANE as usize * blocks.len();
        let terms = [
            millionths(means.iter().filter(|other| **other <= mean).count(), means.len()),
            millionths(fired.min(entered), entered),
            millionths(late as usize, 32 * timers.len()),
            1_000_000 - millionths((fired * CYCLES as usize).min(budget), budget),
        ];
        let weight = 800_000 + 200_000 * (terms.iter().sum::<u64>() / 4) / 1_000_000;
        let starved = timers.iter().any(|(_, seen)| seen.waited >= 7 && !seen.fires);
        weight.max(if starved { 1_500_000 } else { 500_000 })
    })
}

/// Cycles that a fire uses.
const CYCLES: u64 = 100;

proptest! {
    #[test]
    fn agrees_with_the_terms_as_they_are_written(blocks in blocks()) {
        let mut auction = Auction::default();
        for block in &blocks {
            let mut standings = BTreeMap::<_, Standing>::new();
            for (n, Seen { waited, tip, fires }) in block {
                let standing = standings.entry(actor(*n)).or_default();
                standing.note(*waited, *tip);
                if *fires {
                    standing.fire(*waited, CYCLES);
                }
            }
            auction.record(LANE, standings);
        }
        auction.rollover(&RULES);
        prop_assert_eq!([0, 1, 2, 3].map(|n| auction.weight(&actor(n))), model(&blocks));
    }
}

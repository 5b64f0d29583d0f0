//! The lane against a simple model: classify, sort everything, fill.

use super::*;
use crate::timer::{TimerConfig, auction::Standing, eip1559, record};
use proptest::prelude::*;
use std::{cmp::Reverse, collections::BTreeMap};

/// Pseudo-random numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn of(&mut self, choices: &[u64]) -> u64 {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Accounts that count the questions.
struct World {
    balances: Vec<Wei>,
    weights: Vec<u64>,
    asked: Vec<[u32; 2]>,
}

impl World {
    fn new(balances: Vec<Wei>, weights: Vec<u64>) -> Self {
        let asked = vec![[0; 2]; balances.len()];
        Self { balances, weights, asked }
    }
}

impl LaneAccounts for World {
    fn balance(&mut self, number: u32) -> Wei {
        self.asked[number as usize][0] += 1;
        self.balances[number as usize]
    }

    fn weight(&mut self, number: u32) -> u64 {
        self.asked[number as usize][1] += 1;
        self.weights[number as usize]
    }
}

const NOW: u32 = 1_000;

/// A random block's worth of timers, with ties, misfits, expired ones and ones without funds.
struct Case {
    due: Vec<Due>,
    uses: Vec<Room>,
    prices: Prices,
    balances: Vec<Wei>,
    weights: Vec<u64>,
}

fn case(policy: Policy, seed: u64) -> Case {
    let random = &mut Random(seed);
    let actors = random.of(&[1, 2, 7, 100]);
    let timers = random.of(&[0, 1, 20, 500, 3_000, 9_000]);
    let tips = random.of(&[1, 2, 50, 1 << 40]);
    let ids = random.of(&[1, 3, u64::MAX]);
    let gas: &[u64] = match random.below(4) {
        0 => &[0],
        1 => &[1, 50, 100, 200],
        2 => &[90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100],
        _ => &[60, 120],
    };
    let config = TimerConfig {
        lane_timer_cycles: random.of(&[100, 1_000, 20_000]),
        max_cycles_per_fire: 150,
        max_cycles_per_fire_auction_phase: 110,
        gc_cycles_per_block: GC_CYCLES * random.of(&[0, 3, 100_000]) + 199,
        lane_timer_cells: random.of(&[640, 6_400, 1_000_000]),
        ..TimerConfig::default()
    };
    let (mut due, mut uses) = (Vec::new(), Vec::new());
    for seq in 0..timers {
        let gas_limit = random.of(gas) as u32;
        let ascending = if random.below(2) == 0 { seq } else { random.below(tips) };
        due.push(Due {
            id_and_cells: random.below(ids) << 16 | random.of(&[0, 1, 1, 5, 11]),
            max_fee: random.of(&[Due::DEFAULT_BID, 9, 10, 30, 1 << 41]),
            max_priority: ascending,
            seq: seq as u32,
            height: NOW - random.below(50) as u32,
            expires_at: NOW - 1 + random.of(&[0, 1, 5, 5, 5]) as u32,
            gas_limit: if random.below(9) == 0 { Due::DEAD } else { gas_limit },
            actor: random.below(actors) as u32,
            payer: random.below(actors) as u32,
        });
        let cells = due.last().map_or(0, Due::cell_limit);
        uses.push(Room {
            cycles: random.below(u64::from(gas_limit) + 1),
            cells: random.below(cells + 1),
        });
    }
    let balance = |random: &mut Random| Wei::new(u128::from(random.of(&[900, 5_000, 1 << 62])));
    Case {
        due,
        uses,
        prices: Prices {
            policy,
            basefee_cycle: Wei::new(10),
            basefee_lane: Wei::new(10),
            basefee_cell: Wei::new(3),
            p50: Wei::new(5),
            config,
        },
        balances: (0..actors).map(|_| balance(random)).collect(),
        weights: (0..actors).map(|_| random.of(&[6, 9, 9, 12])).collect(),
    }
}

/// The outcome of a block for its due timers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    expired: Vec<u32>,
    insolvent: Vec<u32>,
    fired: Vec<(u32, u128)>,
    consumed: Room,
    counts: LaneCounts,
    standings: BTreeMap<u32, Standing>,
}

fn run(case: &Case, buffers: &mut Buffers) -> (Outcome, World) {
    let mut world = World::new(case.balances.clone(), case.weights.clone());
    let now = Height::new(NOW.into());
    let mut scan = scan(&case.due, now, &case.prices, &mut world, buffers);
    let mut fired = Vec::new();
    let consumed = scan.ranking.fill(case.prices.room(), |pick| {
        fired.push((pick.index, pick.priority.get()));
        Some(case.uses[pick.index as usize])
    });
    assert_eq!(scan.ranking.next(Room::default()), None);
    let standings = scan.ranking.standings().collect();
    let Scan { expired, insolvent, counts, gc_left, .. } = scan;
    let removed = (expired.len() + insolvent.len()) as u64;
    assert_eq!(removed + gc_left, case.prices.config.gc_cycles_per_block / GC_CYCLES);
    (Outcome { expired, insolvent, fired, consumed, counts, standings }, world)
}

/// The same outcome, computed literally from the spec.
fn model(case: &Case) -> Outcome {
    let Case { due, uses, prices, balances, weights } = case;
    let lane = prices.room();
    let (fifo, auction) = (prices.policy == Policy::Fifo, prices.policy == Policy::GbaAuction);
    let floor = if auction { prices.basefee_cycle } else { prices.basefee_lane };
    let lane_basefee =
        if prices.policy == Policy::Eip1559 { prices.basefee_lane } else { Wei::ZERO };
    let mut gc = prices.config.gc_cycles_per_block / GC_CYCLES;
    let mut outcome = Outcome::default();
    let mut ranked = Vec::new();
    let mut slices = BTreeMap::new();
    for (index, timer) in (0..).zip(due) {
        if !timer.is_live() {
            continue;
        }
        outcome.counts.live += 1;
        let mut remove = |list: &mut Vec<u32>| {
            if gc > 0 {
                gc -= 1;
                list.push(index);
            } else {
                outcome.counts.gc_waiting += 1;
            }
        };
        if NOW > timer.expires_at {
            remove(&mut outcome.expired);
            continue;
        }
        slices.insert(timer.actor, 0);
        let (max_fee, tip) = match timer.max_fee {
            Due::DEFAULT_BID => {
                let bid = eip1559::default_bid(floor, prices.basefee_cell, prices.p50);
                (bid.max_fee_per_cycle, bid.max_priority_fee_per_cycle)
            }
            fee => (Wei::new(fee.into()), Wei::new(timer.max_priority.into())),
        };
        let priority = if fifo { Some(Wei::ZERO) } else { eip1559::priority(max_fee, tip, floor) };
        let waited = u64::from(NOW - timer.height);
        if auction {
            let standing = outcome.standings.entry(timer.actor).or_default();
            standing.due += 1;
            standing.fresh += u64::from(waited == 0);
            standing.tips += priority.map_or(0, Wei::get);
            standing.late += waited.min(32);
            standing.starved += u64::from(waited >= 7);
        }
        let stated = priority.unwrap_or(Wei::ZERO);
        let price = prices.basefee_cycle.saturating_add(lane_basefee).saturating_add(stated);
        let cells = timer.cell_limit();
        let cost = record::max_cost(timer.gas_limit.into(), price, cells, prices.basefee_cell);
        assert_eq!(prices.max_cost(timer.gas_limit.into(), cells, stated), cost);
        if balances[timer.payer as usize] < cost {
            if auction {
                outcome.counts.uncovered += 1;
            } else {
                remove(&mut outcome.insolvent);
            }
            continue;
        }
        let Some(priority) = priority else {
            outcome.counts.priced_out += 1;
            continue;
        };
        if u64::from(timer.gas_limit) > prices.cap() || cells > lane.cells {
            outcome.counts.over_cap += 1;
        } else {
            outcome.counts.ranked += 1;
            ranked.push((index, timer, priority.get()));
        }
    }
    let weight = |actor: u32| u128::from(weights[actor as usize]);
    match prices.policy {
        Policy::Fifo => {}
        Policy::Eip1559 => ranked.sort_by_key(|(_, timer, priority)| {
            let weight = weight(timer.actor);
            (Reverse((priority * weight, weight)), timer.height, timer.id(), timer.seq)
        }),
        Policy::GbaAuction => ranked.sort_by_key(|(_, timer, priority)| {
            (Reverse((*priority, weight(timer.actor))), timer.height, timer.id(), timer.seq)
        }),
    }
    let all: u128 = slices.keys().map(|actor| weight(*actor)).sum();
    for (actor, slice) in &mut slices {
        *slice = (u128::from(lane.cycles) * weight(*actor) / all) as u64;
    }
    let rounds: &[bool] = if auction { &[true, false] } else { &[false] };
    for sliced in rounds {
        ranked.retain(|(index, timer, priority)| {
            let (gas, used) = (u64::from(timer.gas_limit), uses[*index as usize]);
            let room = lane.less(outcome.consumed);
            let slice = slices.entry(timer.actor).or_default();
            let fits = gas <= room.cycles && timer.cell_limit() <= room.cells;
            let fires = fits && (!sliced || gas <= *slice);
            if fires {
                outcome.consumed = outcome.consumed.plus(used);
                *slice = slice.saturating_sub(used.cycles);
                outcome.fired.push((*index, *priority));
                if let Some(standing) = outcome.standings.get_mut(&timer.actor) {
                    standing.fired += 1;
                    standing.consumed += used.cycles;
                    standing.starved -= u64::from(NOW - timer.height >= 7);
                }
            }
            !fires
        });
    }
    outcome
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn agrees_with_the_plain_form(seeds in prop::collection::vec(any::<u64>(), 3)) {
        // The buffers of one block are reused by the next, under any policy.
        let mut buffers = Buffers::default();
        for seed in seeds {
            for &policy in Policy::ALL {
                let case = case(policy, seed);
                let (outcome, world) = run(&case, &mut buffers);
                prop_assert_eq!(outcome, model(&case));
                prop_assert!(world.asked.iter().flatten().all(|&times| times <= 1), "asked once");
            }
        }
    }
}

/// A minimal timer, for tests to adapt.
const TIMER: Due = Due {
    id_and_cells: 0,
    max_fee: 0,
    max_priority: 0,
    seq: 0,
    height: NOW,
    expires_at: NOW,
    gas_limit: 100,
    actor: 0,
    payer: 0,
};

proptest! {
    /// Each timer's way matches the scan's count.
    #[test]
    fn ways_are_those_of_the_scan(seed in any::<u64>(), policy in 0usize..3) {
        let case = case(Policy::ALL[policy], seed);
        let (now, mut world) =
            (Height::new(NOW.into()), World::new(case.balances.clone(), case.weights.clone()));
        let mut buffers = Buffers::default();
        let scan = scan(&case.due, now, &case.prices, &mut world, &mut buffers);
        let mut counts = LaneCounts::default();
        let (mut expired, mut unfunded) = (0, 0);
        for due in case.due.iter().filter(|due| due.is_live()) {
            counts.live += 1;
            match way(due, now, &case.prices, case.balances[due.payer as usize]) {
                Way::Expired => expired += 1,
                Way::Unfunded { .. } => unfunded += 1,
                Way::PricedOut => counts.priced_out += 1,
                Way::OverCycles | Way::OverCells => counts.over_cap += 1,
                Way::Ranked { priority } => {
                    prop_assert_eq!(case.prices.priority(due), Some(priority));
                    counts.ranked += 1;
                }
            }
        }
        let auction = case.prices.policy == Policy::GbaAuction;
        counts.uncovered = if auction { unfunded } else { 0 };
        let removed = (scan.expired.len() + scan.insolvent.len()) as u64;
        let to_remove = expired + unfunded - counts.uncovered;
        counts.gc_waiting = to_remove - removed;
        prop_assert_eq!(scan.counts, counts);
    }
}

#[test]
fn prices_compare_at_the_ends_of_their_width() {
    let check = |policy, price: u128, max_fee, max_priority, expected: Option<u64>| {
        let price = Wei::new(price);
        let prices = Prices {
            policy,
            basefee_cycle: if policy == Policy::GbaAuction { price } else { Wei::ZERO },
            basefee_lane: price,
            basefee_cell: Wei::ZERO,
            p50: Wei::new(7),
            config: TimerConfig::default(),
        };
        let priority = prices.priority(&Due { max_fee, max_priority, ..TIMER });
        let expected = expected.map(|wei| Wei::new(wei.into()));
        assert_eq!(priority, expected, "{policy:?} {price} {max_fee} {max_priority}");
    };
    const MOST: u64 = u64::MAX - 1;
    for policy in [Policy::Eip1559, Policy::GbaAuction] {
        check(policy, 100, 99, 0, None);
        check(policy, 100, 103, 5, Some(3));
        check(policy, 0, MOST, u64::MAX, Some(MOST));
        check(policy, MOST.into(), MOST, 1, Some(0));
        check(policy, u64::MAX.into(), MOST, 1, None);
        check(policy, u128::MAX, MOST, 1, None);
        check(policy, 100, Due::DEFAULT_BID, 0, Some(7));
        check(policy, 3, Due::DEFAULT_BID, 0, Some(3));
        check(policy, u128::MAX, Due::DEFAULT_BID, 0, Some(0));
    }
    check(Policy::Fifo, u128::MAX, 0, 5, Some(0));
    check(Policy::Fifo, 1, Due::DEFAULT_BID, 5, Some(0));
}

#[test]
fn the_widest_products_order_and_nobody_pays_beyond_the_range() {
    let mut case = case(Policy::Eip1559, 0);
    let wide = Due { max_fee: u64::MAX - 1, max_priority: u64::MAX - 1, ..TIMER };
    case.due = vec![wide, Due { max_priority: u64::MAX - 2, actor: 1, ..wide }];
    case.due.push(Due { max_priority: u64::MAX - 2, ..wide });
    case.uses = vec![Room::default(); 3];
    case.balances = vec![Wei::new(u128::MAX); 2];
    case.weights = vec![u64::MAX - 1, u64::MAX];
    case.prices.basefee_lane = Wei::ZERO;
    let mut buffers = Buffers::default();
    // (2^64 − 2)² is 1 more than (2^64 − 3) × (2^64 − 1).
    let fired =
        |outcome: Outcome| outcome.fired.iter().map(|(index, _)| *index).collect::<Vec<_>>();
    assert_eq!(fired(run(&case, &mut buffers).0), [0, 1, 2]);
    // The cost saturates: only an account with the maximum balance could pay it.
    case.prices.basefee_cycle = Wei::new(u128::MAX);
    case.balances = vec![Wei::new(u128::MAX), Wei::new(u128::MAX - 1)];
    case.due[1].payer = 1;
    assert_eq!(run(&case, &mut buffers).0, model(&case));
    assert_eq!(run(&case, &mut buffers).0.insolvent, [1]);
}

#[test]
fn what_did_not_fire_takes_nothing_from_the_lane() {
    let mut case = case(Policy::Fifo, 0);
    case.due = vec![TIMER; 3];
    case.balances = vec![Wei::new(u128::MAX)];
    case.prices.config.lane_timer_cycles = 199;
    let mut buffers = Buffers::default();
    let mut world = World::new(case.balances.clone(), vec![0]);
    let mut scan = scan(&case.due, Height::new(NOW.into()), &case.prices, &mut world, &mut buffers);
    let mut tried = Vec::new();
    let consumed = scan.ranking.fill(Room { cycles: 199, cells: 0 }, |pick| {
        tried.push(pick.index);
        (pick.index > 0).then_some(Room { cycles: 100, cells: 0 })
    });
    assert_eq!((tried, consumed.cycles), (vec![0, 1], 100));
}

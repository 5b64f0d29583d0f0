//! Selection of due timers: `cargo bench -p cowboy-engine --bench lane`.
//!
//! Each figure of the lane is a block's whole work, scan, ranking and all picks, where there is
//! room for 100 of them, compared with one pass that only reads the same memory. The other figures
//! are the cost of a block's fires in fairness and auction state, root included.

use cowboy_engine::{
    primitives::{Address, Height, Wei},
    timer::{
        Auction, Due, Fairness, Policy, TimerConfig,
        auction::Standing,
        lane::{Buffers, LaneAccounts, Prices, Room, scan},
    },
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

const NOW: u32 = 1_000_000;
/// The number of fires that fit the lane.
const ROOM: u32 = 100;
const LANE: u32 = 2_000_000;
/// About as many timers as an actor may have.
const PER_ACTOR: u32 = 1_000;

/// Pseudo-random, the same in every run (splitmix64).
fn random(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A timer that is solvent and alive, with its own tip; a tenth of them are priced out.
fn timer(n: u32, actors: u32) -> Due {
    let actor = random(n.into()) as u32 % actors;
    let max_fee = 50 + random(u64::from(n) << 32) % 500;
    Due {
        id_and_cells: random(u64::from(n) << 16) & !0xffff | 0x12c,
        max_fee,
        max_priority: random(u64::from(n) << 8) % max_fee,
        seq: n,
        height: NOW - n % 3_000,
        expires_at: NOW + 1_000_000,
        gas_limit: LANE / ROOM,
        actor,
        payer: actor,
    }
}

struct World(Vec<(Wei, u64)>);

impl LaneAccounts for World {
    fn balance(&mut self, number: u32) -> Wei {
        self.0[number as usize].0
    }

    fn weight(&mut self, number: u32) -> u64 {
        self.0[number as usize].1
    }
}

fn world(actors: u32) -> World {
    let account = |n: u32| (Wei::cby(1_000_000), 1_000_000 + random(n.into()) % 1_000_000);
    World((0..actors).map(account).collect())
}

fn prices(policy: Policy) -> Prices {
    Prices {
        policy,
        basefee_cycle: Wei::new(100),
        basefee_lane: Wei::new(100),
        basefee_cell: Wei::new(100),
        p50: Wei::new(10),
        config: TimerConfig { lane_timer_cycles: LANE.into(), ..TimerConfig::default() },
    }
}

/// A block in which every pick uses `uses(gas_limit)` cycles. Yields the number of picks.
fn block(
    due: &[Due],
    prices: &Prices,
    world: &mut World,
    buffers: &mut Buffers,
    uses: fn(u32) -> u32,
) -> u32 {
    let mut picks = 0;
    let mut scan = scan(due, Height::new(NOW.into()), prices, world, buffers);
    scan.ranking.fill(prices.room(), |pick| {
        picks += 1;
        Some(Room { cycles: uses(due[pick.index as usize].gas_limit).into(), cells: 100 })
    });
    picks
}

/// Uses the whole gas limit.
fn all(gas_limit: u32) -> u32 {
    gas_limit
}

fn policies(c: &mut Criterion) {
    let mut group = c.benchmark_group("lane");
    group.sample_size(20);
    for timers in [10_000, 1_000_000] {
        let actors = timers / PER_ACTOR;
        let due: Vec<_> = (0..timers).map(|n| timer(n, actors)).collect();
        let mut world = world(actors);
        let mut buffers = Buffers::default();
        group.throughput(Throughput::Elements(timers.into()));
        for policy in Policy::ALL {
            let prices = prices(*policy);
            assert_eq!(block(&due, &prices, &mut world, &mut buffers, all), ROOM);
            group.bench_function(BenchmarkId::new(policy.name(), timers), |b| {
                b.iter(|| block(black_box(&due), &prices, &mut world, &mut buffers, all));
            });
        }
        group.bench_function(BenchmarkId::new("read", timers), |b| {
            b.iter(|| {
                black_box(&due).iter().fold(0, |sum, due| {
                    let wide = due.id() ^ due.max_fee ^ due.max_priority;
                    let narrow = due.seq ^ due.height ^ due.expires_at ^ due.gas_limit;
                    sum ^ wide ^ u64::from(narrow ^ due.actor ^ due.payer)
                })
            });
        });
    }
    group.finish();
}

/// A million due timers, arranged to make a block take long, under `eip1559`.
fn worst(c: &mut Criterion) {
    let mut group = c.benchmark_group("lane, a million of");
    group.sample_size(20);
    let timers = 1_000_000;
    let prices = prices(Policy::Eip1559);
    let mut case = |name: &str, actors: u32, change: fn(&mut Due), uses| {
        let mut due: Vec<_> = (0..timers).map(|n| timer(n, actors)).collect();
        due.iter_mut().for_each(change);
        let (mut world, mut buffers) = (world(actors), Buffers::default());
        let picks = block(&due, &prices, &mut world, &mut buffers, uses);
        group.bench_function(format!("{name} ({picks} fire)"), |b| {
            b.iter(|| block(black_box(&due), &prices, &mut world, &mut buffers, uses));
        });
    };
    let equal = |due: &mut Due| {
        due.max_fee = 500;
        due.max_priority = 0;
    };
    case("equal tips", 1_000, equal, all);
    // Each is better than all before it.
    let rising = |due: &mut Due| {
        due.max_fee = 1_000_000;
        due.max_priority = due.seq.into();
        due.actor = 0;
    };
    case("tips that rise", 1_000, rising, all);
    case("an actor each", timers, |_| {}, all);
    // The best timers fill the lane up to less than any other asks for, except the worst.
    let misfits = |due: &mut Due| {
        let small = due.seq.is_multiple_of(500);
        due.max_fee = 500;
        due.max_priority = if small { 1 } else { 2 };
        due.gas_limit = if small { 1_000 } else { 240_000 };
    };
    case("misfits", 1_000, misfits, all);
    // The lane is nearly full after the first. From there on each takes one cycle of the rest, and
    // all that rank next ask for as much as there was before.
    let falling = |due: &mut Due| {
        due.max_fee = 10_000_000;
        due.max_priority = 1_000_000 - u64::from(due.seq);
        due.gas_limit = if due.seq < 8 { 249_000 } else { 8_000 - due.seq / 512 };
        due.actor = 0;
    };
    case("gas limits that fall", 1_000, falling, |gas| if gas > 8_000 { gas } else { 1 });
    // A fire that fails at once uses next to nothing.
    case("fires that take little", 1_000, |_| {}, |_| 20);
    group.finish();
}

fn address(n: u64) -> Address {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&random(n).to_be_bytes());
    Address(bytes)
}

/// A block's share of the state, among 1,000 actors that fire, once the window is full.
fn state(c: &mut Criterion) {
    const WINDOW: u64 = 1_000;
    let mut group = c.benchmark_group("state");
    let mut fairness = Fairness::default();
    let mut next = |now: u64| {
        let actor = |n: u64| address(random(now * u64::from(ROOM) + n) % 1_000);
        let fires = (0..u64::from(ROOM)).map(|n| (actor(n), 1)).collect();
        fairness.slide(Height::new(now), WINDOW);
        let median = fairness.twice_median();
        fairness.record(Height::new(now), &fires);
        (median, fairness.clone(), fairness.root())
    };
    let mut now = 0;
    for _ in 0..WINDOW {
        now += 1;
        next(now);
    }
    group.bench_function("fairness of 100 fires", |b| {
        b.iter(|| {
            now += 1;
            next(now)
        });
    });
    group.bench_function("auction of 1,000 actors", |b| {
        let mut auction = Auction::default();
        b.iter(|| {
            let standing = Standing { due: 1, fresh: 1, tips: 5, ..Standing::default() };
            auction.record(LANE.into(), (0..1_000).map(|n| (address(n), standing)));
            (auction.clone(), auction.root())
        });
    });
    group.finish();
}

criterion_group!(benches, policies, worst, state);
criterion_main!(benches);

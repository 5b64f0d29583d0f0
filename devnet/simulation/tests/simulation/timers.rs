//! A thousand timers due in every block while validators crash and return: the same timers fire on
//! all validators, for the same money.
//!
//! `COWBOYCTL_TIMER_BLOCKS=500` sets the number of blocks.

use super::{
    actors::{deploy, send},
    *,
};
use commonware_runtime::Supervisor as _;
use cowboy_devnet::storage::StoredLane;
use cowboy_engine::{
    actor::Budget,
    chain::{
        Payload,
        transaction::{CallActor, Transfer},
    },
    primitives::{Address, Wei},
};
use cowboy_simulation::{
    invariant::Invariants,
    scenario::{check, watch},
};
use rand::RngExt as _;
use std::env;

/// Timers that schedule their successors. Each has a price cap, or an agent with a maximum bid, so
/// that the lane's price settles: bids of twice the price would drive it up until all payers are
/// broke. Some expire soon, some fail now and then.
const BEAT: &str = r#"
def again(ctx, number, first):
    extra = {}
    if first or number % 2 == 0:
        extra["gba"] = ctx.self
    else:
        extra["max_fee_per_cycle"] = 1000 + 250 * (number % 40)
    if number % 7 == 0:
        extra["max_priority_fee_per_cycle"] = number
    height = ctx.height + 1 + number % 3
    if number % 5 == 0:
        extra["expires_at"] = height + 6
    pvm_host.schedule_timer(height, str(number), gas_limit = 8000, **extra)

def handle_timer(ctx, payload):
    number = int(payload)
    pvm_host.set_state("beats", pvm_host.get_state("beats", 0) + 1)
    pvm_host.emit("beat", number)
    again(ctx, number, False)
    if (ctx.height + number) % 89 == 0:
        fail("now and then")

def begin(ctx, payload):
    words = payload.split(" ")
    for number in range(int(words[0])):
        again(ctx, int(words[1]) + number, True)

def getGasBid(context: GBAContext) -> TxFeeParams:
    if context.current_block_height % 97 == 0:
        fail("no bid in this block")
    return TxFeeParams(
        max_fee_per_cycle = 1000 + 100 * (context.trigger_block_height % 50),
        max_priority_fee_per_cycle = 3,
        max_fee_per_cell = context.basefee_cell,
        max_priority_fee_per_cell = 0,
    )
"#;

/// Number of timers due in every block, once the target is reached.
const DUE: u64 = 1_000;
/// Approximate number of timers; lost ones are replaced. Timers that fired in the last two blocks
/// may not be due again yet.
const TIMERS: usize = 2_400;
/// Number of timers that one call schedules.
const BATCH: usize = 100;
/// The lane's cycle limit: a few hundred of the thousand fire.
const LANE: u64 = 700_000;

/// The number of blocks to run.
fn blocks() -> u64 {
    let wanted = env::var("COWBOYCTL_TIMER_BLOCKS").ok();
    wanted.map_or(100, |wanted| wanted.parse().expect("COWBOYCTL_TIMER_BLOCKS is a number"))
}

/// Replaces timers that failed, expired or were never scheduled, by calls from all accounts in
/// turn. A call that only a crashed validator knew is lost and made up for later.
fn top_up(cluster: &Cluster, actors: &[Address], turn: &mut usize) {
    let services = cluster.running().next().expect("most validators run").services();
    let there = services.ledger.head().timers().len();
    for _ in 0..TIMERS.saturating_sub(there).div_ceil(BATCH) {
        let actor = actors[*turn % actors.len()];
        let payload = format!("{BATCH} {}", *turn * BATCH).into_bytes();
        let (handler, value) = ("begin".to_owned(), Wei::ZERO);
        let call = Payload::CallActor(CallActor { actor, handler, payload, value });
        let budget = Budget { cycles: 500_000, cells: 50_000 };
        send(cluster, *turn % 4, call, budget);
        *turn += 1;
    }
}

#[test]
fn validators_fire_the_same_timers() {
    run(11, async |mut context| {
        let mut setup = Setup::new(4, 0, BLOCK_TIME);
        setup.genesis.params.timers.config.lane_timer_cycles = LANE;
        let mut cluster = cluster(context.child("cluster"), setup).await;
        cluster.start_all().expect("they start");
        assert!(cluster.reach(2, MINUTE).await);
        let actors = deploy(&cluster, &[BEAT]).await;
        for (from, actor) in actors.iter().enumerate() {
            let payload = Payload::Transfer(Transfer { to: *actor, amount: Wei::cby(100_000) });
            let nothing = Budget { cycles: 0, cells: 0 };
            assert!(send(&cluster, from, payload, nothing));
        }
        let supply = cluster.genesis().state().expect("a chain").supply().total();
        let mut invariants = Invariants::new(supply);
        let mut watching: Vec<_> = (0..4).map(|index| watch(&cluster, index)).collect();
        let (mut turn, mut topped_up, mut stopped, mut crashes) = (0, 0, None, 0);
        let mut next_change = cluster.heights().0.get() + 8;
        // The first block with enough due timers.
        let mut full = None;
        let end = |full: Option<u64>| full.map(|full| full + blocks());
        while end(full).is_none_or(|end| cluster.heights().0.get() < end) {
            context.sleep(BLOCK_TIME).await;
            for (index, blocks) in watching.iter_mut().enumerate() {
                check(&mut invariants, index, blocks.as_mut()).expect("invariants hold");
            }
            let height = cluster.heights().1.get();
            if full.is_none() {
                assert!(height < 60, "not enough timers at {height}");
                let lanes = lanes(&cluster, height, height);
                full = lanes.last().filter(|lane| due(lane) >= DUE).map(|_| height);
            }
            // The previous calls are in blocks by now.
            if height >= topped_up + 4 {
                topped_up = height;
                top_up(&cluster, &actors, &mut turn);
            }
            if height < next_change {
                continue;
            }
            next_change = height + context.random_range(4..12);
            match stopped.take() {
                Some(index) => {
                    cluster.start(index).expect("it starts again");
                    watching[index] = watch(&cluster, index);
                }
                None => {
                    let index = context.random_range(0..4);
                    // Every second crash restarts from a snapshot in the middle of an epoch instead
                    // of executing its blocks again.
                    if crashes % 2 == 0 {
                        let running = cluster.validator(index).expect("it runs");
                        running.services().ledger.snapshot().expect("the store takes it");
                    }
                    crashes += 1;
                    cluster.stop(index).await;
                    check(&mut invariants, index, watching[index].as_mut())
                        .expect("invariants hold");
                    (watching[index], stopped) = (None, Some(index));
                }
            }
        }
        if let Some(index) = stopped {
            cluster.start(index).expect("it starts again");
        }
        let last = cluster.heights().1.get() + 3;
        assert!(cluster.reach(last, 10 * MINUTE).await, "stuck at {:?}", cluster.heights());
        // Compares blocks, roots, receipts, fires, lanes and events of all four.
        settle(&cluster).await;
        let full = full.expect("it was reached");
        let lanes = lanes(&cluster, full, last);
        let sum = |of: fn(&StoredLane) -> u64| lanes.iter().map(of).sum::<u64>();
        let (fired, deferred) = (sum(|l| l.report.fired), sum(|l| l.report.deferred));
        let (priced_out, expired) = (sum(|l| l.report.priced_out), sum(|l| l.report.expired));
        let least = lanes.iter().map(due).min().expect("there are blocks");
        println!(
            "{} blocks, {crashes} crashes: {fired} fired, {deferred} deferred, {priced_out} of \
             them priced out, {expired} expired; at least {least} due in a block",
            lanes.len()
        );
        assert!(least >= DUE, "{least} due");
        assert!(fired > 50 * lanes.len() as u64 && expired > 0 && priced_out > 0);
        assert!(crashes > 1);
    });
}

/// The lanes in the store of the validator with the highest head.
fn lanes(cluster: &Cluster, from: u64, to: u64) -> Vec<StoredLane> {
    let services = cluster.running().map(|validator| validator.services());
    let furthest = services.max_by_key(|services| services.ledger.head().height());
    let store = furthest.expect("most validators run").ledger.store();
    store.lanes(Height::new(from), Height::new(to)).expect("stored")
}

/// The number of timers that were due in a block.
pub(super) fn due(lane: &StoredLane) -> u64 {
    let report = &lane.report;
    report.fired + report.deferred + report.expired + report.insolvent
}

//! The first block of an epoch while validators crash and return: timers that were scheduled an
//! epoch ahead fire alike on all validators, whether they executed the blocks, execute them again
//! or catch up.

use super::{
    actors::{deploy, send},
    timers::due,
    *,
};
use commonware_runtime::{Supervisor as _, deterministic::Context};
use cowboy_devnet::{
    chain::ledger::ExecutedBlock,
    storage::{StoredLane, ValidatorStore},
};
use cowboy_engine::{
    actor::Budget,
    chain::{
        EventKind, Payload,
        event::{TimerCancelled, TimerCancelledInsufficientFunds, TimerExpired, TimerFired},
        transaction::{CallActor, CancelTimer, ExtendTimer, Transfer},
    },
    primitives::{Address, Wei},
    timer::{EPOCH_BLOCKS, EPOCH_QUEUE_LEN, Policy, RING_BUFFER_SIZE, Timer, TimerPlace},
};
use cowboy_simulation::{
    invariant::Invariants,
    scenario::{check, watch},
};
use std::collections::BTreeMap;
use tokio::sync::broadcast::Receiver;

/// `plan` schedules for heights far ahead. `begin` fills the lane until a height with timers that
/// schedule their successors; some have an agent, some expire soon, some fail now and then.
const PLANNER: &str = r#"
def plan(ctx, payload):
    for height in json_decode(payload):
        pvm_host.schedule_timer(
            height, "", gas_limit = 8000, max_fee_per_cycle = 1000000,
            max_priority_fee_per_cycle = 5, gba = ctx.self,
        )

def again(ctx, number, until):
    extra = {"gba": ctx.self}
    height = ctx.height + 1 + number % 3
    if number % 5 == 0:
        extra["expires_at"] = height + 3
    pvm_host.schedule_timer(height, "%d %d" % (number, until), gas_limit = 8000, **extra)

def begin(ctx, payload):
    words = payload.split(" ")
    for number in range(int(words[0])):
        again(ctx, number, int(words[1]))

def handle_timer(ctx, payload):
    pvm_host.emit("fired", payload)
    if payload:
        words = payload.split(" ")
        if ctx.height < int(words[1]):
            again(ctx, int(words[0]), int(words[1]))
        if (ctx.height + int(words[0])) % 89 == 0:
            fail("now and then")

def getGasBid(context: GBAContext) -> TxFeeParams:
    if context.current_block_height % 97 == 0:
        fail("no bid in this block")
    return TxFeeParams(
        max_fee_per_cycle = 100000,
        max_priority_fee_per_cycle = context.trigger_block_height % 9,
        max_fee_per_cell = context.basefee_cell,
        max_priority_fee_per_cell = 0,
    )
"#;

/// The first block of epoch 1.
const BOUNDARY: u64 = EPOCH_BLOCKS;
/// A timer scheduled for this height in the chain's first blocks is beyond the block ring, in the
/// bucket of epoch 1.
const AFAR: u64 = RING_BUFFER_SIZE + 20;
/// The lane's cycle limit: a dozen fires, fewer than are due while it is filled.
const LANE: u64 = 60_000;
/// Number of timers per actor that fill it.
const FILLING: u64 = 20;
/// Allows timers beyond the epoch queue.
const MAX_TTL: u64 = 10_000_000;

/// A cluster in which every block is checked.
struct Checked {
    context: Context,
    cluster: Cluster,
    invariants: Invariants,
    watching: Vec<Option<Receiver<Arc<ExecutedBlock>>>>,
}

impl Checked {
    fn new(context: Context, cluster: Cluster) -> Self {
        let supply = cluster.genesis().state().expect("a chain").supply().total();
        let watching = (0..4).map(|index| watch(&cluster, index)).collect();
        Self { context, cluster, invariants: Invariants::new(supply), watching }
    }

    fn check(&mut self) {
        for (index, blocks) in self.watching.iter_mut().enumerate() {
            check(&mut self.invariants, index, blocks.as_mut()).expect("invariants hold");
        }
    }

    /// Runs for this number of block times.
    async fn pass(&mut self, blocks: u32) {
        for _ in 0..blocks {
            self.context.sleep(BLOCK_TIME).await;
            self.check();
        }
    }

    /// Runs until all running validators have stored `height`.
    async fn reach(&mut self, height: u64) {
        let mut steps = 0;
        let mut seen = self.cluster.heights();
        while self.cluster.heights().0.get() < height {
            self.pass(1).await;
            let now = self.cluster.heights();
            steps = if now == seen { steps + 1 } else { 0 };
            assert!(steps < 400, "stuck at {seen:?}");
            seen = now;
        }
    }

    /// Stops a validator at once. It returns from a snapshot of its store: the newest regular one,
    /// or one taken now.
    async fn crash(&mut self, index: usize, snapshot: bool) {
        if snapshot {
            let running = self.cluster.validator(index).expect("it runs");
            running.services().ledger.snapshot().expect("the store takes it");
        }
        self.cluster.stop(index).await;
        // It has executed more since the last check.
        self.check();
        self.watching[index] = None;
    }

    fn start(&mut self, index: usize) {
        self.cluster.start(index).expect("it starts again");
        self.watching[index] = watch(&self.cluster, index);
    }

    fn call(&self, from: usize, actor: Address, handler: &str, payload: &str) {
        let (handler, payload) = (handler.to_owned(), payload.as_bytes().to_vec());
        let call = CallActor { actor, handler, payload, value: Wei::ZERO };
        let budget = Budget { cycles: 200_000, cells: 20_000 };
        assert!(send(&self.cluster, from, Payload::CallActor(call), budget));
    }

    /// Cancels a timer of actor 0, and extends another one of it by a block.
    fn change(&self, cancelled: &Timer, extended: &Timer) {
        let nothing = Budget { cycles: 0, cells: 0 };
        let cancel = Payload::CancelTimer(CancelTimer { timer_id: cancelled.id });
        let (timer_id, expires_at) = (extended.id, extended.expires_at.next());
        let extend = Payload::ExtendTimer(ExtendTimer { timer_id, expires_at });
        assert!(send(&self.cluster, 0, cancel, nothing));
        assert!(send(&self.cluster, 0, extend, nothing));
    }

    fn state(&self) -> State {
        self.cluster.running().next().expect("most run").services().ledger.head()
    }
}

/// The number of timers due in each block, derived only from the events of earlier blocks.
fn expected(store: &ValidatorStore, to: u64) -> Vec<u64> {
    let mut waiting = BTreeMap::new();
    let mut expected = Vec::new();
    for height in (1..=to).map(Height::new) {
        expected.push(waiting.values().filter(|at| **at <= height).count() as u64);
        for stored in store.events_at(height).expect("stored") {
            match stored.event.kind {
                EventKind::TimerScheduled(timer) => {
                    waiting.insert(timer.timer_id, timer.height);
                }
                EventKind::TimerFired(TimerFired { timer_id, .. })
                | EventKind::TimerExpired(TimerExpired { timer_id, .. })
                | EventKind::TimerCancelled(TimerCancelled { timer_id, .. })
                | EventKind::TimerCancelledInsufficientFunds(TimerCancelledInsufficientFunds {
                    timer_id,
                    ..
                }) => {
                    waiting.remove(&timer_id).expect("it waited");
                }
                _ => {}
            }
        }
    }
    expected
}

#[test]
fn an_epoch_begins_alike_for_everybody() {
    run(12, async |context| {
        let mut setup = Setup::new(4, 0, BLOCK_TIME);
        let params = &mut setup.genesis.params.timers;
        // The policy whose weights change with an epoch.
        params.policy = Policy::GbaAuction;
        params.config.lane_timer_cycles = LANE;
        params.config.max_ttl_blocks = MAX_TTL;
        let mut cluster = cluster(context.child("cluster"), setup).await;
        cluster.start_all().expect("they start");
        assert!(cluster.reach(2, MINUTE).await);
        let actors = deploy(&cluster, &[PLANNER]).await;
        let mut chain = Checked::new(context, cluster);

        // Around the boundary, within the block ring; in epoch 1, but beyond the ring; in epoch 2;
        // in the first epoch beyond the epoch queue, and in the one after it.
        let around = BOUNDARY - 6..BOUNDARY + 6;
        let afar = AFAR..AFAR + 12;
        let beyond = EPOCH_QUEUE_LEN + 1;
        let further = [2 * EPOCH_BLOCKS, beyond * EPOCH_BLOCKS, (beyond + 1) * EPOCH_BLOCKS];
        let heights: Vec<_> =
            around.clone().chain(afar.clone()).chain(further.map(|first| first + 7)).collect();
        for (from, actor) in actors.iter().enumerate() {
            let payload = Payload::Transfer(Transfer { to: *actor, amount: Wei::cby(100_000) });
            assert!(send(&chain.cluster, from, payload, Budget { cycles: 0, cells: 0 }));
            chain.call(from, *actor, "plan", &format!("{heights:?}"));
        }
        chain.reach(20).await;
        let state = chain.state();
        let place = |height: u64, state: &State| {
            let of_height = |timer: &Timer| timer.height == Height::new(height);
            let timers: Vec<_> = state.timers().iter().filter(of_height).collect();
            assert_eq!(timers.len(), 3, "at {height}");
            TimerPlace::of(timers[0].height, timers[0].scheduled_at, state.height())
        };
        assert_eq!(state.timers().len(), 3 * heights.len());
        assert_eq!(place(around.start, &state), TimerPlace::Ring);
        assert!(afar.clone().all(|at| place(at, &state) == TimerPlace::Epoch));
        assert_eq!(
            further.map(|first| place(first + 7, &state)),
            [TimerPlace::Epoch, TimerPlace::Overflow, TimerPlace::Overflow]
        );
        assert_eq!(state.timers().overflow_len(), 6);
        let mut mine: Vec<_> = state
            .timers()
            .iter()
            .filter(|timer| timer.actor == actors[0] && afar.contains(&timer.height.get()))
            .collect();
        mine.sort_by_key(|timer| timer.height);

        // One validator is away for nearly all of epoch 0.
        chain.crash(3, false).await;
        chain.reach(BOUNDARY - 40).await;
        for (from, actor) in actors.iter().enumerate() {
            chain.call(from, *actor, "begin", &format!("{FILLING} {}", BOUNDARY + 60));
        }
        chain.reach(BOUNDARY - 30).await;
        chain.change(&mine[0], &mine[1]);
        chain.reach(BOUNDARY - 9).await;
        // Two of four cannot decide until the crashed one is back.
        chain.crash(0, false).await;
        chain.pass(20).await;
        chain.start(0);
        chain.reach(BOUNDARY + 1).await;
        chain.crash(1, true).await;
        chain.pass(20).await;
        chain.start(1);
        chain.reach(BOUNDARY + 5).await;
        chain.start(3);
        chain.reach(BOUNDARY + 15).await;
        // Returns before the boundary, with the snapshot of block 3,584.
        chain.crash(2, false).await;
        chain.reach(BOUNDARY + 30).await;
        chain.start(2);
        chain.reach(BOUNDARY + 40).await;
        let state = chain.state();
        assert_eq!(state.timers().overflow_len(), 3);
        assert!(state.auction().weights().count() > 0, "an epoch of competition has its effect");
        chain.change(&mine[2], &mine[3]);
        chain.reach(AFAR - 8).await;
        // Half of the validators look up due timers in the queue; the others have had them at hand
        // since they entered the epoch.
        for index in [0, 1] {
            chain.crash(index, index == 0).await;
        }
        chain.start(0);
        chain.start(1);
        chain.reach(AFAR + 5).await;
        for index in 0..4 {
            chain.crash(index, index % 2 == 0).await;
        }
        for index in 0..4 {
            chain.start(index);
        }
        let last = afar.end + 4;
        chain.reach(last).await;
        // Compares blocks, roots, receipts, fires, lanes and events of all four.
        settle(&chain.cluster).await;

        let store = chain.cluster.store(3);
        let lanes = store.lanes(Height::new(1), Height::new(last)).expect("stored");
        let found: Vec<_> = lanes.iter().map(due).collect();
        assert_eq!(found, expected(store, last));
        // All timers scheduled an epoch ahead fire on time, except for the two that were cancelled.
        let on_time = |at: u64| {
            let fires = store.fires(Height::new(at)).expect("stored");
            fires.iter().filter(|fire| fire.due_at.get() == at).count()
        };
        let on_time: Vec<_> = afar.map(on_time).collect();
        assert_eq!(on_time, [2, 3, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
        let places = further.map(|first| place(first + 7, &chain.state()));
        assert_eq!(places, [TimerPlace::Epoch, TimerPlace::Epoch, TimerPlace::Overflow]);
        let carried = lanes[BOUNDARY as usize - 2].report.deferred;
        let sum = |of: fn(&StoredLane) -> u64| lanes.iter().map(of).sum::<u64>();
        let (fired, deferred) = (sum(|l| l.report.fired), sum(|l| l.report.deferred));
        let expired = sum(|l| l.report.expired);
        println!(
            "{last} blocks: {fired} fired, {deferred} deferred, {carried} of them into the epoch, \
             {expired} expired"
        );
        assert!(carried > 0 && expired > 0);
    });
}

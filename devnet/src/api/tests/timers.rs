//! Timers over the API: lists, outcomes, reasons for waiting, the lane, governance.

use super::fixture::*;
use crate::{
    client::BlockAt,
    types::{
        ActorLineKind, AmountText, BlockFire, Bytes, DeferralReason, DryRunRequest, ErrorCode,
        GovernedParameter, LaneQuery, LogQuery, PendingSetting, Setting, Text, Timer, TimerBucket,
        TimerQuery, TimerStatus, TimerSummary, TimerTier,
    },
};
use cowboy_engine::{
    chain::{
        Payload,
        transaction::{CancelTimer, ExtendTimer, SetParameter, Transfer, UpdateTimerConfig},
    },
    primitives::{Address, Hash, Height, Wei},
    timer::{self, Policy, Tiers, TimerRequest},
};
use serde_json::json;
use std::sync::Arc;

mod proofs;

const CLOCK: &str = r#"
def handle_timer(ctx, payload):
    pvm_host.log("at", ctx.height)
    pvm_host.emit("tick", {"payload": payload})
    if payload == "fail":
        fail("as told")
    if payload == "spin":
        for _ in range(1000000):
            pass
    if payload == "again":
        pvm_host.schedule_timer(ctx.height + 100, "later")
    return {"height": ctx.height}

def other(ctx, payload):
    return payload

def fleeting(ctx, payload):
    pvm_host.cancel_timer(pvm_host.schedule_timer(ctx.height + 5, payload))

def at_your_expense(ctx, payload):
    return pvm_host.schedule_timer(ctx.height + 9, payload, fee_payer = ctx.sender)

def getGasBid(context: GBAContext) -> TxFeeParams:
    fail("no bid today")
"#;

fn request(actor: Address, height: u64, payload: &str) -> TimerRequest {
    let payload = payload.as_bytes().to_vec();
    TimerRequest { actor, height: Height::new(height), payload, ..TimerRequest::default() }
}

impl Devnet {
    /// An actor of `dev-0` with this balance.
    fn clock(&mut self, money: Wei) -> Address {
        let clock = self.deploy_module(CLOCK);
        let pay = Payload::Transfer(Transfer { to: clock, amount: money });
        let pay = self.sign("faucet", pay);
        self.push(vec![pay]);
        clock
    }

    fn here(&self) -> u64 {
        self.state.height().get()
    }

    fn until(&mut self, height: u64) {
        self.push_empty(height - self.here());
    }

    /// Schedules timers in one block; returns their ids in order.
    pub(super) fn schedule(&mut self, requests: Vec<TimerRequest>) -> Vec<Hash> {
        let before: Vec<_> = self.state.timers().iter().map(|timer| timer.id).collect();
        let nonce = self.state.account(&address("dev-0")).nonce;
        let signed = requests.into_iter().zip(nonce..).map(|(request, nonce)| {
            self.sign_at("dev-0", nonce, Payload::ScheduleTimer(Arc::new(request)))
        });
        let signed: Vec<_> = signed.collect();
        let wanted = signed.len();
        self.push(signed);
        let mut new: Vec<_> =
            self.state.timers().iter().filter(|timer| !before.contains(&timer.id)).collect();
        new.sort_by_key(|timer| timer.seq);
        assert_eq!(new.len(), wanted);
        new.iter().map(|timer| timer.id).collect()
    }

    async fn timer(&self, id: &Hash) -> Timer {
        self.client.timer(&id.to_string()).await.unwrap()
    }

    async fn listed(&self, query: TimerQuery) -> Vec<TimerSummary> {
        self.client.timers(&query).await.unwrap()
    }
}

fn ids(timers: &[TimerSummary]) -> Vec<Hash> {
    timers.iter().map(|timer| *timer.timer_id).collect()
}

fn runs(timer: &Timer) -> Vec<(u64, u64, DeferralReason)> {
    timer.deferrals.iter().map(|run| (run.from, run.to, run.reason)).collect()
}

#[tokio::test]
async fn a_timer_is_shown_from_its_scheduling_to_its_fire() {
    let mut devnet = Devnet::new().await;
    let clock = devnet.clock(Wei::cby(1_000));
    let at = devnet.here() + 5;
    let id = devnet.schedule(vec![request(clock, at, "again")])[0];
    let timer = devnet.timer(&id).await;
    assert_eq!((timer.status, timer.tier), (TimerStatus::Scheduled, Some(TimerTier::Ring)));
    assert_eq!((timer.height, timer.scheduled_at), (at, at - 4));
    assert_eq!(timer.payload_text.as_deref(), Some("again"));
    assert_eq!((timer.handler.as_str(), *timer.fee_payer), ("handle_timer", clock));
    assert_eq!((timer.gas_limit, timer.cell_limit, timer.promised), (250_000, 50_048, None));
    assert!(timer.max_cost.is_some_and(|cost| cost.get() > 0));
    assert_eq!(timer.events.len(), 1);
    assert_eq!(timer.events[0].timer_id.as_deref(), Some(&id));
    assert_eq!(devnet.client.timer(&id.to_string()[..12]).await.unwrap(), timer);
    let upper = id.to_string()[2..14].to_uppercase();
    assert_eq!(devnet.client.timer(&format!("0x{upper}")).await.unwrap(), timer);

    devnet.until(at);
    let timer = devnet.timer(&id).await;
    assert_eq!((timer.status, timer.tier), (TimerStatus::Fired, None));
    assert_eq!((timer.fired_at, timer.ended_at), (Some(at), Some(at)));
    assert_eq!((timer.deferred_blocks, timer.max_cost), (0, None));
    assert_eq!(timer.result.unwrap()["height"], at);
    assert_eq!(timer.log, [format!("at {at}")]);
    let charged = timer.charged.unwrap();
    let burned = charged.burned_cycle.get() + charged.burned_lane.get() + charged.cells.get();
    assert_eq!(burned + charged.tip.get() + timer.payer_balance.get(), Wei::cby(1_000).get());
    let kinds: Vec<_> = timer.events.iter().map(|event| event.kind.as_str()).collect();
    let fire = ["ActorCalled", "ActorEmitted", "TimerScheduled", "TimerFired"];
    assert!(kinds.starts_with(&["TimerScheduled"]), "{kinds:?}");
    for kind in fire {
        let found = timer.events[1..].iter().find(|event| event.kind == kind);
        assert_eq!(found.unwrap().timer.as_deref(), Some(&id), "{kinds:?}");
    }

    let block = devnet.client.block(BlockAt::Height(at)).await.unwrap();
    let [BlockFire { timer_id, status, cycles, .. }] = block.fires.as_slice() else { panic!() };
    assert_eq!((**timer_id, *status), (id, TimerStatus::Fired));
    assert_eq!((Some(*cycles), block.cycles_used), (timer.cycles, *cycles));
    let log = devnet.client.actor_log(&clock.to_string(), &LogQuery::default()).await.unwrap();
    let causes: Vec<_> =
        log.lines.iter().map(|line| (line.kind, line.timer.as_deref().copied())).collect();
    assert_eq!(causes, [(ActorLineKind::Log, Some(id)), (ActorLineKind::Event, Some(id))]);
    assert!(log.lines.iter().all(|line| line.transaction.is_none()));
    // Both validators store the same.
    for validator in ["validator-0", "validator-1"] {
        let client = devnet.at(validator);
        assert_eq!(client.timer(&id.to_string()).await.unwrap().ended_at, Some(at));
    }
}

#[tokio::test]
async fn lists_are_by_height_then_by_end_and_bounded() {
    let mut devnet = Devnet::new().await;
    let (clock, other) = (devnet.clock(Wei::cby(1_000)), devnet.clock(Wei::cby(1_000)));
    let here = devnet.here();
    let named = TimerRequest {
        handler: Some("other".to_owned()),
        expires_at: Some(Height::new(here + 40)),
        ..request(other, here + 30, "")
    };
    let selects = request(clock, here + 9, r#"{"_handler": "other", "_payload": "eA=="}"#);
    let new = devnet.schedule(vec![
        request(clock, here + 20, "x"),
        request(clock, here + 3, "fail"),
        request(clock, here + 2, "x"),
        named,
        selects,
    ]);
    let cancel = Payload::CancelTimer(CancelTimer { timer_id: new[0] });
    let expires_at = Height::new(here + 50);
    let extend = Payload::ExtendTimer(ExtendTimer { timer_id: new[3], expires_at });
    let nonce = devnet.state.account(&address("dev-0")).nonce;
    devnet.push(vec![
        devnet.sign_at("dev-0", nonce, cancel),
        devnet.sign_at("dev-0", nonce + 1, extend),
    ]);
    devnet.until(here + 4);

    let waiting = devnet.listed(TimerQuery::default()).await;
    assert_eq!(ids(&waiting), [new[4], new[3]]);
    assert_eq!(waiting.iter().map(|t| t.handler.as_str()).collect::<Vec<_>>(), ["other"; 2]);
    assert_eq!(waiting[1].expires_at, here + 50);
    let all = TimerQuery { all: Some(true), ..TimerQuery::default() };
    let listed = devnet.listed(all.clone()).await;
    assert_eq!(ids(&listed)[..3], [new[4], new[3], new[1]]);
    assert_eq!(ids(&listed).len(), 5);
    assert_eq!((listed[2].status, listed[2].fired_at), (TimerStatus::Failed, Some(here + 3)));
    let limited = TimerQuery { limit: Some(3), ..all.clone() };
    assert_eq!(ids(&devnet.listed(limited).await), ids(&listed)[..3]);
    let of = TimerQuery { actor: Some(other.to_string()[..14].to_owned()), ..all.clone() };
    assert_eq!(ids(&devnet.listed(of).await), [new[3]]);
    let by = |payer: Address| TimerQuery { payer: Some(payer.to_string()), ..all.clone() };
    assert_eq!(ids(&devnet.listed(by(other)).await), [new[3]]);
    assert_eq!(ids(&devnet.listed(by(clock)).await).len(), 4);
    assert_eq!(ids(&devnet.listed(by(address("dev-0"))).await), []);
    for (status, expected) in [
        (TimerStatus::Cancelled, vec![new[0]]),
        (TimerStatus::Failed, vec![new[1]]),
        (TimerStatus::Fired, vec![new[2]]),
        (TimerStatus::Due, vec![]),
        (TimerStatus::Expired, vec![]),
    ] {
        let query = TimerQuery { status: Some(status), ..TimerQuery::default() };
        assert_eq!(ids(&devnet.listed(query).await), expected, "{status:?}");
    }
    let newest = devnet.client.timer("latest").await.unwrap();
    assert_eq!(newest, devnet.timer(new.last().unwrap()).await);
    let failed = devnet.timer(&new[1]).await;
    assert!(failed.error.unwrap().contains("as told"));
    assert_eq!((failed.result, failed.log.len()), (None, 1));

    devnet.call(clock, "fleeting", "x");
    let events = devnet.store(0).events_at(devnet.state.height()).unwrap();
    let fleeting = events.iter().find_map(|stored| stored.event.timer_id()).unwrap();
    for (id, code, text) in [
        (fleeting.to_string(), ErrorCode::NotFound, "it never waited"),
        (Hash::ZERO.to_string(), ErrorCode::NotFound, "there is no timer"),
        ("0x12345678".to_owned(), ErrorCode::NotFound, "no timer's id begins with"),
        ("12".to_owned(), ErrorCode::NotFound, "there is no timer `12`"),
        (format!("0x{:070}", 1), ErrorCode::NotFound, "there is no timer `0x"),
    ] {
        let error = devnet.client.timer(&id).await.unwrap_err();
        assert_eq!(error.code(), Some(code), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[tokio::test]
async fn waiting_is_explained_block_by_block() {
    let mut devnet = Devnet::of(|params| {
        params.timers.config.lane_timer_cycles = 20_000;
        params.timers.config.gc_cycles_per_block = 0;
    })
    .await;
    let (clock, poor) = (devnet.clock(Wei::cby(1_000)), devnet.clock(Wei::new(1)));
    let at = devnet.here() + 20;
    let basefee = devnet.state.lane_basefee(devnet.state.height().next());
    let with = |gas_limit| TimerRequest { gas_limit: Some(gas_limit), ..request(clock, at, "x") };
    let new = devnet.schedule(vec![
        // A cheap timer that the price never falls to again: an idle lane gets cheaper until it is
        // used.
        TimerRequest { max_priority_fee_per_cycle: Some(Wei::new(1)), ..with(19_900) },
        with(19_900),
        with(300_000),
        TimerRequest { expires_at: Some(Height::new(at + 1)), ..with(19_900) },
        TimerRequest { gas_limit: Some(100), ..request(poor, at, "x") },
    ]);
    devnet.until(at + 2);
    assert!(devnet.state.lane_basefee(Height::new(at)) < basefee);
    let [first, second, over, short, poor] = new.as_slice() else { panic!() };
    assert_eq!(devnet.timer(first).await.fired_at, Some(at));
    // When two timers have the same priority, their ids decide.
    let (second, short) = (devnet.timer(second).await, devnet.timer(short).await);
    let fired_at = |timer: &Timer| timer.fired_at;
    let (early, late) =
        if fired_at(&second) == Some(at + 1) { (&second, &short) } else { (&short, &second) };
    assert_eq!(runs(early), [(at, at, DeferralReason::LaneFull)]);
    assert!(early.deferrals[0].explanation.contains("asks for 19900"), "{early:?}");
    if late.expires_at == at + 1 {
        let expected =
            [(at, at + 1, DeferralReason::LaneFull), (at + 2, at + 2, DeferralReason::GcWaiting)];
        assert_eq!(runs(late), expected);
        assert_eq!((late.status, late.deferred_blocks), (TimerStatus::Due, 3));
    } else {
        assert_eq!(runs(late), [(at, at + 1, DeferralReason::LaneFull)]);
        assert_eq!(late.fired_at, Some(at + 2));
    }
    let over = devnet.timer(over).await;
    assert_eq!(runs(&over), [(at, at + 2, DeferralReason::OverCap)]);
    assert_eq!((over.status, over.tier), (TimerStatus::Due, Some(TimerTier::CarryOver)));
    assert_eq!(
        over.deferrals[0].explanation,
        "it asks for 300000 cycles, and under eip1559 a fire gets at most 250000"
    );
    // It is not removed, and its cost is not checked while the lane is full.
    let poor = devnet.timer(poor).await;
    assert_eq!(poor.deferred_blocks, 3);
    assert!(runs(&poor).iter().all(|(_, _, reason)| {
        matches!(reason, DeferralReason::InsufficientFunds | DeferralReason::LaneFull)
    }));
}

#[tokio::test]
async fn a_cap_that_the_lane_outgrew_is_explained() {
    let mut devnet = Devnet::of(|params| {
        params.timers.config.lane_timer_cycles = 3_000;
        params.timers.genesis_lane_basefee = Wei::new(1_000_000);
    })
    .await;
    let clock = devnet.clock(Wei::cby(100_000));
    let at = devnet.here() + 4;
    let price = devnet.state.lane_basefee(devnet.state.height().next());
    let busy = (0..20).map(|_| TimerRequest {
        gas_limit: Some(1_500),
        max_fee_per_cycle: Some(Wei::new(10_000_000)),
        max_priority_fee_per_cycle: Some(Wei::new(5)),
        ..request(clock, at, "spin")
    });
    let cheap = TimerRequest {
        gas_limit: Some(2_900),
        max_fee_per_cycle: Some(price),
        ..request(clock, at, "cheap")
    };
    let ids = devnet.schedule(busy.chain([cheap]).collect());
    devnet.until(at + 8);
    let cheap = devnet.timer(ids.last().unwrap()).await;
    let lanes = devnet.client.timer_fees(&LaneQuery { from: Some(at), limit: None }).await.unwrap();
    assert_eq!(lanes.len(), 9);
    // Each block's reason follows from its lane.
    for run in &cheap.deferrals {
        for height in run.from..=run.to {
            let lane = lanes.iter().find(|lane| lane.height == height).unwrap();
            let priced_out = lane.lane_basefee.0 > price;
            assert_eq!(run.reason == DeferralReason::PricedOut, priced_out, "{run:?} {lane:?}");
            assert_eq!(lane.priced_out, u64::from(priced_out));
        }
    }
    assert!(cheap.deferrals.iter().any(|run| run.reason == DeferralReason::PricedOut
        && run.explanation.contains(&format!("its cap of {price} wei per cycle"))));
    let blocks: u64 = cheap.deferrals.iter().map(|run| run.to - run.from + 1).sum();
    assert_eq!(blocks, cheap.deferred_blocks);
}

#[tokio::test]
async fn an_auction_lets_wait_who_cannot_pay_and_asks_the_agents_of_the_others() {
    let mut devnet = Devnet::of(|params| params.timers.policy = Policy::GbaAuction).await;
    let (clock, poor) = (devnet.clock(Wei::cby(1_000)), devnet.clock(Wei::new(1)));
    let at = devnet.here() + 3;
    let asking = |actor| TimerRequest { gba: Some(clock), ..request(actor, at, "x") };
    let ids = devnet.schedule(vec![asking(clock), asking(poor)]);
    devnet.until(at + 2);
    let fired = devnet.timer(&ids[0]).await;
    assert_eq!(fired.status, TimerStatus::Fired);
    assert!(fired.events.iter().any(|event| event.kind == "GbaFailed"));
    let lanes = devnet.client.timer_fees(&LaneQuery { from: Some(at), limit: None }).await.unwrap();
    assert_eq!(lanes.iter().map(|lane| lane.asked).collect::<Vec<_>>(), [1, 0, 0]);
    assert!(lanes[0].questions.get() > 0 && lanes[0].cells <= lanes[0].cell_capacity);
    let waits = devnet.timer(&ids[1]).await;
    assert_eq!(runs(&waits), [(at, at + 2, DeferralReason::InsufficientFunds)]);
    // For an agent that was not asked, the default bid of the block counts.
    assert!(waits.bid.is_none() && waits.max_cost.is_some());
    let cancel = Payload::CancelTimer(CancelTimer { timer_id: ids[1] });
    let cancel = devnet.sign("dev-0", cancel);
    devnet.push(vec![cancel]);
    let gone = devnet.timer(&ids[1]).await;
    assert_eq!((gone.status, gone.ended_at), (TimerStatus::Cancelled, Some(at + 3)));
    // Timers came before the transactions, so it was deferred once more.
    assert_eq!(gone.deferred_blocks, 4);
}

#[tokio::test]
async fn the_last_bid_of_a_timer_is_kept() {
    let mut devnet = Devnet::of(|params| {
        params.timers.policy = Policy::GbaAuction;
        params.timers.config.lane_timer_cycles = 20_000;
    })
    .await;
    let clock = devnet.clock(Wei::cby(1_000));
    let at = devnet.here() + 3;
    let asking =
        || TimerRequest { gba: Some(clock), gas_limit: Some(19_000), ..request(clock, at, "spin") };
    let mut ids = devnet.schedule(vec![asking(), asking(), asking(), asking()]);
    // With equal bids the lower id goes first, and one fits a block.
    ids.sort_unstable();
    let last = ids[3];
    devnet.until(at + 1);
    let waits = devnet.timer(&last).await;
    assert_eq!(runs(&waits), [(at, at + 1, DeferralReason::LaneFull)]);
    assert!(waits.bid.is_some_and(|bid| bid.failed));
    let told = waits.events.iter().filter(|event| event.kind == "GbaFailed");
    assert_eq!(told.count(), 1, "it is told once");
    let cancel = devnet.sign("dev-0", Payload::CancelTimer(CancelTimer { timer_id: last }));
    devnet.push(vec![cancel]);
    let gone = devnet.timer(&last).await;
    assert_eq!((gone.status, gone.ended_at), (TimerStatus::Cancelled, Some(at + 2)));
    assert!(gone.bid.is_some_and(|bid| bid.failed));
}

#[tokio::test]
async fn a_sender_pays_for_what_it_allowed() {
    let mut devnet = Devnet::new().await;
    let clock = devnet.clock(Wei::new(1));
    let at = devnet.here() + 9;
    let payer = address("dev-0");
    let request = TimerRequest { fee_payer: Some(payer), ..request(clock, at, "x") };
    let payload = Payload::ScheduleTimer(Arc::new(request));
    let unwilling = devnet.sign("dev-0", payload.clone());
    devnet.push(vec![unwilling.clone()]);
    let refused = devnet.client.transaction(&unwilling.hash().to_string()).await.unwrap();
    assert_eq!(refused.error.as_deref(), Some("PayerNotWilling"));
    assert_eq!(refused.timer_allowance, None);

    let unsigned = devnet.sign("dev-0", payload).transaction.clone().allowing(Wei::cby(3));
    let willing = unsigned.sign(&key("dev-0"));
    devnet.push(vec![willing.clone()]);
    let done = devnet.client.transaction(&willing.hash().to_string()).await.unwrap();
    assert_eq!(done.timer_allowance.map(|amount| amount.0), Some(Wei::cby(3)));
    let told = &done.events.iter().find(|event| event.kind == "TimerScheduled").unwrap().data;
    assert_eq!(told["fee_payer"], payer.to_string());
    let timer = devnet.client.timer("latest").await.unwrap();
    assert_eq!((*timer.fee_payer, timer.status), (payer, TimerStatus::Scheduled));
    assert_eq!(told["max_cost"], timer.promised.unwrap().to_string());
    let query = TimerQuery { payer: Some("dev-0".to_owned()), ..TimerQuery::default() };
    assert_eq!(ids(&devnet.listed(query).await), [*timer.timer_id]);
    let query = TimerQuery { payer: Some("dev-77".to_owned()), ..TimerQuery::default() };
    let error = devnet.client.timers(&query).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::NotFound), "{error}");
}

#[tokio::test]
async fn a_dry_run_shows_what_timers_would_take_from_the_caller() {
    let mut devnet = Devnet::new().await;
    let clock = devnet.clock(Wei::new(1)).to_string();
    let run = async |timer_allowance: Option<Wei>| {
        let request = DryRunRequest {
            sender: "dev-0".to_owned(),
            handler: "at_your_expense".to_owned(),
            payload: Text(Bytes::default()),
            value: AmountText::default(),
            cycles: None,
            cells: None,
            timer_allowance: timer_allowance.map(Text),
            at: None,
            ask_agent: None,
            trace: None,
            profile: None,
            source: None,
        };
        devnet.client.dry_run(&clock, &request).await.unwrap()
    };
    let free = run(None).await;
    let told = &free.events.iter().find(|event| event.kind == "TimerScheduled").unwrap().data;
    assert_eq!(told["fee_payer"], address("dev-0").to_string());
    let cost: Wei = told["max_cost"].as_str().unwrap().parse().unwrap();
    assert!(run(Some(cost)).await.success);
    let short = run(Some(Wei::new(cost.get() - 1))).await;
    assert!(!short.success && short.message.unwrap().contains("PayerNotWilling"));
}

#[tokio::test]
async fn the_queue_and_the_lane_are_counted() {
    let mut devnet = Devnet::new().await;
    let clock = devnet.clock(Wei::cby(1_000));
    let here = devnet.here();
    let at = |ahead| request(clock, here + ahead, "x");
    devnet.schedule(vec![at(3), at(3), at(4_000), at(9_000), at(9_001), at(2_000_000)]);
    let queue = devnet.client.timer_queue().await.unwrap();
    assert_eq!((queue.height, queue.timers, queue.epoch), (here + 1, 6, 0));
    let ring =
        [TimerBucket { at: here + 3, timers: 2 }, TimerBucket { at: here + 4_000, timers: 1 }];
    assert_eq!(queue.ring, ring);
    let epochs = [(9_000 + here) / 3_600, (2_000_000 + here) / 3_600];
    assert_eq!(
        queue.epochs.iter().map(|b| (b.at, b.timers)).collect::<Vec<_>>(),
        [(epochs[0], 2), (epochs[1], 1)]
    );
    assert_eq!((queue.overflow, queue.carry_over), (0, 0));
    assert_eq!(*queue.root, devnet.state.timers().root());

    devnet.until(here + 4);
    let lanes = devnet.client.timer_fees(&LaneQuery::default()).await.unwrap();
    assert_eq!(lanes.len() as u64, here + 4);
    assert_eq!(lanes.iter().map(|lane| lane.fired).sum::<u64>(), 2);
    let busy = &lanes[here as usize + 2];
    assert_eq!((busy.height, busy.fired, busy.policy.as_str()), (here + 3, 2, "eip1559"));
    assert_eq!(busy.utilisation_per_mille, busy.consumed * 1_000 / busy.capacity);
    let some = LaneQuery { from: Some(2), limit: Some(2) };
    let some = devnet.client.timer_fees(&some).await.unwrap();
    assert_eq!(some.iter().map(|lane| lane.height).collect::<Vec<_>>(), [2, 3]);

    let fairness = devnet.client.timer_fairness().await.unwrap();
    assert_eq!((fairness.policy.as_str(), fairness.scope.as_str()), ("eip1559", "actor"));
    assert_eq!((fairness.window_blocks, fairness.twice_median), (1_000, 4));
    let [member] = fairness.members.as_slice() else { panic!("{fairness:?}") };
    assert_eq!((*member.account, member.recent, member.weight_per_mille), (clock, 2, 1_000));
}

#[tokio::test]
async fn governed_parameters_are_listed_with_their_bounds() {
    let mut devnet = Devnet::of(|params| {
        params.system_deployers = vec![address("faucet")];
        params.timers.config.priority_tier_multipliers =
            Tiers { economy: 1, standard: 2, fast: 3, urgent: 4 };
    })
    .await;
    let key = "system:cip5:lane_timer_cycles".to_owned();
    let set = Payload::SetParameter(SetParameter { key: key.clone(), value: 77 });
    let set = devnet.sign("faucet", set);
    devnet.push(vec![set]);
    let parameters = devnet.client.governance().await.unwrap();
    assert_eq!(parameters.len(), 42);
    let lane = parameters.iter().find(|parameter| parameter.key == key).unwrap();
    assert_eq!((lane.value.number(), lane.genesis.number()), (Some(77), Some(2_000_000)));
    assert_eq!(lane.min, Some(1));
    let urgent = parameters.iter().find(|parameter| parameter.key.ends_with("urgent")).unwrap();
    assert_eq!((urgent.value.number(), urgent.genesis.number()), (Some(4), Some(4)));
    assert_eq!(urgent.max, Some(1_000_000));
    assert!(parameters.iter().all(|parameter| !parameter.about.is_empty()));
}

/// Proposals are listed until their block is the next one, in agreement with the chain's events.
#[tokio::test]
async fn proposals_are_listed_until_they_hold() {
    let mut devnet = Devnet::of(|params| params.system_deployers = vec![address("faucet")]).await;
    let (policy, lane) = ("system:cip1:policy", "system:cip5:lane_timer_cycles");
    let at = devnet.here() + 3;
    let setting = |key: &str, value| timer::ProposedValue { key: key.to_owned(), value };
    let update = Payload::SysUpdateTimerConfig(UpdateTimerConfig {
        settings: vec![setting(policy, 1), setting(lane, 77)],
        height: Some(Height::new(at)),
    });
    let signed = devnet.sign("faucet", update);
    let hash = signed.hash();
    devnet.push(vec![signed]);
    let known = |all: &[GovernedParameter]| {
        let of = |key: &str| all.iter().find(|parameter| parameter.key == key).unwrap().clone();
        [of(policy), of(lane)]
    };
    let [word, number] = known(&devnet.client.governance().await.unwrap());
    let fifo = Setting::Word("fifo".to_owned());
    assert_eq!((word.value, word.since), (Setting::Word("eip1559".to_owned()), Some(0)));
    assert_eq!(word.choices, ["eip1559", "fifo", "gba-auction"]);
    let by = Some(Text(address("faucet")));
    assert_eq!(word.pending, [PendingSetting { height: at, value: fifo.clone(), by }]);
    assert_eq!(number.value, Setting::Number(2_000_000));
    assert_eq!(number.pending[0].value, Setting::Number(77));
    let shown = devnet.client.transaction(&hash.to_string()).await.unwrap();
    let settings = json!({ policy: "fifo", lane: 77 });
    assert_eq!(shown.payload, json!({ "settings": settings, "height": at }));
    assert_eq!(shown.events[0].data["settings"], settings);
    devnet.push(vec![]);
    let [word, number] = known(&devnet.client.governance().await.unwrap());
    assert_eq!((word.value, word.since, word.pending.len()), (fifo, Some(at), 0));
    assert_eq!((number.value, number.pending.len()), (Setting::Number(77), 0));
    devnet.push(vec![]);
    assert_eq!(devnet.client.timer_fairness().await.unwrap().policy, "fifo");
}

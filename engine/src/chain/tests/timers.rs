//! Timers on the chain: scheduling, firing, paying, policies, and surviving a restart.

use super::{
    actors::{calling, metered},
    *,
};
use crate::{
    actor::Budget,
    primitives::{Cells, Cycles},
    timer::{Activation, Policy, TimerRequest},
};
use event::{TimerCancelledInsufficientFunds, TimerFired};
mod agents;
mod attacks;
mod conservation;
mod governance;
mod proofs;

const BUDGET: Budget = Budget { cycles: 2_000_000, cells: 100_000 };

/// Does what its payload says, and records what happens to it.
const CLOCK: &str = r#"
def handle_timer(ctx, payload):
    if ctx.sender != ctx.self:
        fail("only timers")
    seen = pvm_host.get_state("seen", [])
    pvm_host.set_state("seen", seen + [[ctx.height, payload]])
    if payload == "fail":
        fail("as told")
    if payload == "spin":
        for _ in range(1000000):
            pass
    if payload == "drain":
        pvm_host.transfer("0x" + "dd" * 20, pvm_host.get_balance())
    if payload.startswith("again "):
        gba = pvm_host.get_state("gba")
        pvm_host.schedule_timer(ctx.height + int(payload[6:]), payload, gba = gba)
    if payload.startswith("cancel "):
        pvm_host.cancel_timer(payload[7:])

def bid_by(ctx, payload):
    pvm_host.set_state("gba", payload)

def timeout(ctx, payload):
    args = json_decode(payload)
    return pvm_host.set_timeout(args.pop("blocks"), args.pop("gba", None), **args)

def ping(ctx, payload):
    pvm_host.emit("ping", payload)

def schedule(ctx, payload):
    args = json_decode(payload)
    return pvm_host.schedule_timer(ctx.height + args.pop("in"), args.pop("payload", ""), **args)

def twice(ctx, payload):
    a = pvm_host.schedule_timer(ctx.height + 5, payload)
    b = pvm_host.schedule_timer(ctx.height + 5, payload)
    return [a, b]

def cancel(ctx, payload):
    pvm_host.cancel_timer(payload)

def extend(ctx, payload):
    args = json_decode(payload)
    pvm_host.extend_timer(args["id"], args["until"])

def seen(ctx, payload):
    return pvm_host.get_state("seen", [])
"#;

/// The agent of CIP-1 §7.1, with a switch to fail.
const AGENT: &str = r#"
def getGasBid(context: GBAContext) -> TxFeeParams:
    if pvm_host.get_state("broken", False):
        fail("no bid today")
    return TxFeeParams(
        max_fee_per_cycle           = 2 * context.basefee_lane_timer,
        max_priority_fee_per_cycle  = pvm_host.get_state("tip", context.previous_block_p50_priority_tip_per_cycle),
        max_fee_per_cell            = context.basefee_cell,
        max_priority_fee_per_cell   = 0,
    )

def tip(ctx, payload):
    pvm_host.set_state("tip", int(payload))

def fail_from_now(ctx, payload):
    pvm_host.set_state("broken", True)
"#;

fn with(change: impl FnOnce(&mut Params)) -> Chain {
    let mut genesis = genesis(1);
    genesis.params.system_deployers = vec![key("bob").address()];
    change(&mut genesis.params);
    Chain::new(&genesis)
}

fn chain() -> Chain {
    with(|_| ())
}

fn policy(policy: Policy) -> Chain {
    with(|params| params.timers.policy = policy)
}

fn request(actor: Address, height: u64, payload: &str) -> TimerRequest {
    let payload = payload.as_bytes().to_vec();
    TimerRequest { actor, height: Height::new(height), payload, ..TimerRequest::default() }
}

impl Chain {
    fn fund(&mut self, account: Address, amount: Wei) {
        let pay = Payload::Transfer(transaction::Transfer { to: account, amount });
        assert_eq!(self.one("bob", pay).receipts[0].status, ReceiptStatus::Success);
    }

    /// Deploys a clock with money.
    fn clock(&mut self) -> Address {
        let clock = self.deploy(CLOCK);
        self.fund(clock, Wei::cby(100_000));
        clock
    }

    /// Deploys an agent that bids this tip.
    fn agent(&mut self, tip: u128) -> Address {
        let agent = self.deploy(AGENT);
        self.call(agent, "tip", &tip.to_string());
        agent
    }

    pub(super) fn here(&self) -> u64 {
        self.state.height().get()
    }

    /// Schedules a timer by transaction and returns its id.
    fn schedule(&mut self, request: TimerRequest) -> Hash {
        let execution = self.one("alice", Payload::ScheduleTimer(Arc::new(request)));
        assert_eq!(execution.receipts[0].status, ReceiptStatus::Success);
        scheduled(&execution)[0]
    }

    fn refused(&mut self, name: &str, payload: Payload) -> String {
        let execution = self.one(name, payload);
        execution.receipts[0].status.error().expect("it is refused").to_owned()
    }

    /// Pushes empty blocks up to `height`.
    fn until(&mut self, height: u64) -> Vec<Fire> {
        let mut fires = Vec::new();
        while self.here() < height {
            fires.extend(self.push(vec![]).fires);
        }
        fires
    }
}

fn scheduled(execution: &Execution) -> Vec<Hash> {
    let ids = execution.events.iter().filter_map(|event| match &event.kind {
        EventKind::TimerScheduled(scheduled) => Some(scheduled.timer_id),
        _ => None,
    });
    ids.collect()
}

#[test]
fn a_timer_fires_at_its_height_and_is_paid_for() {
    let mut chain = chain();
    let clock = chain.clock();
    let at = chain.here() + 5;
    let id = chain.schedule(request(clock, at, "hello"));
    assert_eq!(id, crate::timer::record::timer_id(&clock, Height::new(at), b"hello", 1));
    assert_eq!(chain.state.timer(&id).unwrap().payload, b"hello");
    assert!(chain.until(at - 1).is_empty());
    let (before, lane, cell) = (
        chain.state.account(&clock).balance,
        chain.state.lane_basefee(Height::new(at)),
        chain.state.basefee_cell(),
    );
    let cycle = chain.state.basefee_cycle();
    let execution = chain.push(vec![]);
    let [fire] = execution.fires.as_slice() else { panic!("one fires") };
    assert_eq!((fire.timer_id, fire.status.clone()), (id, ReceiptStatus::Success));
    let (cycles, cells) = (u128::from(fire.cycles.get()), u128::from(fire.cells.get()));
    assert_eq!(fire.charged.burned_cycle, cycle.saturating_mul(cycles));
    assert_eq!(fire.charged.burned_lane, lane.saturating_mul(cycles));
    assert_eq!(fire.charged.cells, cell.saturating_mul(cells));
    assert_eq!(fire.charged.tip, Wei::ZERO);
    let paid = before.checked_sub(chain.state.account(&clock).balance).unwrap();
    assert_eq!(paid, fire.charged.total());
    assert_eq!(chain.state.lane().burned, fire.charged.burned_lane);
    assert_eq!(execution.lane.consumed, fire.cycles.get());
    assert_eq!(execution.lane.fired, 1);
    assert!(chain.state.timer(&id).is_none());
    let fired = execution.events.iter().find(|e| e.kind.name() == "TimerFired").unwrap();
    assert_eq!(fired.timer, Some(id));
    assert_eq!(fired.timer_id(), Some(id));
}

#[test]
fn the_lane_basefee_follows_what_the_lane_consumed() {
    let mut chain = chain();
    let start = chain.state.lane().basefee;
    chain.push(vec![]);
    assert_eq!(chain.state.lane().basefee, Wei::new(start.get() - start.get() / 8));
    let clock = chain.clock();
    let at = chain.here() + 20;
    for n in 0..12 {
        let mut request = request(clock, at, "spin");
        request.handler = Some("handle_timer".into());
        request.gas_limit = Some(200_000);
        request.payload = b"spin".to_vec();
        request.expires_at = Some(Height::new(at + 100 + n));
        chain.schedule(request);
    }
    chain.until(at - 1);
    let before = chain.state.lane().basefee;
    let execution = chain.push(vec![]);
    // Ten timers of 200,000 cycles fit two million, and each stops before the step that it cannot
    // pay for.
    assert_eq!((execution.lane.fired, execution.lane.consumed), (10, 1_999_400));
    assert_eq!(execution.lane.deferred, 2);
    assert_eq!(chain.state.lane().basefee, before.saturating_add(Wei::new(before.get() / 8)));
    let next = chain.push(vec![]);
    assert_eq!((next.lane.fired, next.lane.deferred), (2, 0));
}

#[test]
fn handlers_select_fail_and_come_again() {
    let mut chain = chain();
    let clock = chain.clock();
    let at = chain.here() + 10;
    let failing = chain.schedule(request(clock, at, "fail"));
    chain.schedule(request(clock, at, "again 3"));
    let enveloped = r#"{"_handler":"ping","_payload":"aGVsbG8="}"#;
    chain.schedule(request(clock, at, enveloped));
    let named = TimerRequest { handler: Some("ping".into()), ..request(clock, at, enveloped) };
    chain.schedule(named);
    chain.until(at - 1);
    let execution = chain.push(vec![]);
    assert_eq!(execution.fires.len(), 4);
    let failed = execution.fires.iter().find(|fire| fire.timer_id == failing).unwrap();
    assert_eq!(failed.status.name(), "failed");
    assert!(failed.status.error().unwrap().contains("fail: as told"), "{:?}", failed.status);
    assert!(failed.charged.total() > Wei::ZERO, "it is paid for");
    let pings: Vec<_> = execution
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ActorEmitted(emitted) => Some(String::from_utf8_lossy(&emitted.data)),
            _ => None,
        })
        .collect();
    let mut expected = ["\"hello\"".to_owned(), format!("{enveloped:?}")];
    let mut got: Vec<_> = pings.iter().map(ToString::to_string).collect();
    expected.sort();
    got.sort();
    assert_eq!(got, expected);
    // The failing fire kept none of its writes; the other timer repeats forever.
    assert_eq!(chain.until(at + 9).len(), 3);
    let seen = chain.state.stored_at(&clock, "seen").unwrap();
    let seen = String::from_utf8_lossy(seen);
    assert_eq!(seen.matches("again 3").count(), 4, "{seen}");
    assert!(!seen.contains("fail"), "{seen}");
}

#[test]
fn actors_schedule_cancel_and_extend_their_own() {
    let mut chain = chain();
    let clock = chain.clock();
    let call = |chain: &mut Chain, handler: &str, payload: &str| {
        let call = calling(clock, handler, payload, Wei::ZERO);
        let signed = metered(chain, "alice", call, BUDGET);
        chain.push(vec![signed])
    };
    let execution = call(&mut chain, "twice", "tick");
    let ids = scheduled(&execution);
    let nonce = chain.state.account(&key("alice").address()).nonce - 1;
    let height = Height::new(chain.here() + 5);
    let expected = [0, 1].map(|counter: u64| {
        crate::timer::record::timer_id(&clock, height, b"tick", nonce | counter << 48)
    });
    assert_eq!(ids, expected);
    let returned = execution.receipts[0].actor.as_ref().unwrap().result.clone();
    assert_eq!(String::from_utf8(returned).unwrap(), format!("[\"{}\",\"{}\"]", ids[0], ids[1]));

    let until = chain.here() + 1_000;
    let args = format!(r#"{{"id": "{}", "until": {until}}}"#, ids[1]);
    let long = chain.state.timer(&ids[1]).unwrap().expires_at;
    let refused = call(&mut chain, "extend", &args);
    let error = refused.receipts[0].status.error().unwrap();
    assert!(error.contains("ExpiryOutOfRange"), "{error}");
    let args = format!(r#"{{"id": "{}", "until": {}}}"#, ids[1], long.get() + 1);
    assert_eq!(call(&mut chain, "extend", &args).receipts[0].status, ReceiptStatus::Success);
    assert_eq!(chain.state.timer(&ids[1]).unwrap().expires_at, long.next());
    let cancelled = call(&mut chain, "cancel", &ids[0].to_string());
    assert!(kinds(&cancelled).contains(&"TimerCancelled"));
    let again = call(&mut chain, "cancel", &ids[0].to_string());
    let error = again.receipts[0].status.error().unwrap();
    assert!(error.contains("UnknownTimer"), "{error}");
    assert_eq!(chain.until(height.get()).len(), 1);

    // A failing transaction schedules and cancels nothing.
    let other = chain.deploy(CLOCK);
    let stray = calling(other, "cancel", &expected[1].to_string(), Wei::ZERO);
    let signed = metered(&chain, "alice", stray, BUDGET);
    let error = chain.push(vec![signed]).receipts[0].status.error().unwrap().to_owned();
    assert!(error.contains("UnknownTimer"), "{error}");
}

#[test]
fn what_is_wrong_with_a_request_is_said_by_name() {
    let mut chain = chain();
    let clock = chain.clock();
    let at = chain.here() + 100;
    let check = |chain: &mut Chain, name: &str, payload: Payload, expected: &str| {
        let error = chain.refused(name, payload);
        assert!(error.starts_with(expected), "{error}");
    };
    let schedule = |request: TimerRequest| Payload::ScheduleTimer(Arc::new(request));
    let past = request(clock, 1, "");
    check(&mut chain, "alice", schedule(past), "HeightNotInFuture: ");
    check(&mut chain, "bob", schedule(request(clock, at, "")), "Unauthorized: ");
    let unowned = request(key("bob").address(), at, "");
    check(&mut chain, "alice", schedule(unowned), "UnknownActor: ");
    let cheap = TimerRequest { max_fee_per_cycle: Some(Wei::ZERO), ..request(clock, at, "") };
    check(&mut chain, "alice", schedule(cheap), "TimerRejectedBelowBasefee: ");
    let bid = TimerRequest { bid: true, ..request(clock, at, "") };
    check(&mut chain, "alice", schedule(bid), "TimerArgDeprecated: ");
    let id = chain.schedule(request(clock, at, ""));
    let cancel = |timer_id| Payload::CancelTimer(transaction::CancelTimer { timer_id });
    check(&mut chain, "bob", cancel(id), "Unauthorized: ");
    check(&mut chain, "alice", cancel(Hash::ZERO), "UnknownTimer: ");
    let system = |timer_id| Payload::SysCancelTimer(transaction::CancelTimer { timer_id });
    check(&mut chain, "alice", system(id), "Unauthorized: ");
    assert_eq!(chain.one("bob", system(id)).receipts[0].status, ReceiptStatus::Success);
    assert!(chain.state.timer(&id).is_none());
    // For system deployers, a timer that is already gone is not an error.
    assert_eq!(chain.one("bob", system(id)).receipts[0].status, ReceiptStatus::Success);
    let call = calling(clock, "schedule", r#"{"in": 0}"#, Wei::ZERO);
    let signed = metered(&chain, "alice", call, BUDGET);
    let error = chain.push(vec![signed]).receipts[0].status.error().unwrap().to_owned();
    assert!(error.contains("HeightNotInFuture") && error.contains("schedule"), "{error}");
}

#[test]
fn an_actor_has_so_many_timers_and_no_more() {
    let mut chain = with(|params| params.timers.config.max_timers_per_actor = 3);
    let clock = chain.clock();
    let at = chain.here() + 100;
    for n in 0..3 {
        chain.schedule(request(clock, at + n, ""));
    }
    let more = Payload::ScheduleTimer(Arc::new(request(clock, at, "x")));
    assert!(chain.refused("alice", more.clone()).starts_with("TooManyTimers: "));
    let set = |value| {
        let key = "system:cip5:max_timers_per_actor".into();
        Payload::SetParameter(transaction::SetParameter { key, value })
    };
    assert!(chain.refused("alice", set(4)).starts_with("Unauthorized: "));
    // It applies from the next block on.
    let [set, more] = [chain.sign("bob", set(4)), chain.sign("alice", more)];
    let execution = chain.push(vec![set, more.clone()]);
    let statuses: Vec<_> = execution.receipts.iter().map(|r| r.status.name()).collect();
    assert_eq!(statuses, ["success", "failed"]);
    chain.schedule(request(clock, at, "x"));
}

/// Ten timers and money for three: three fire, the rest are removed, in rank order.
#[test]
fn a_payer_who_runs_out_loses_the_rest_in_rank_order() {
    let mut chain = chain();
    let clock = chain.deploy(CLOCK);
    let at = chain.here() + 30;
    let ids: Vec<_> = (0..10u128)
        .map(|n| {
            chain.schedule(TimerRequest {
                gas_limit: Some(100_000),
                max_fee_per_cycle: Some(Wei::new(5_000)),
                max_priority_fee_per_cycle: Some(Wei::new(100 + n)),
                ..request(clock, at, "spin")
            })
        })
        .collect();
    chain.until(at - 2);
    // At the floor, the next block's prices are known.
    let (cycle, cell) = (chain.state.basefee_cycle(), chain.state.basefee_cell());
    let price = |tip: u128| {
        let lane = chain.state.lane().basefee;
        cycle.saturating_add(lane).saturating_add(Wei::new(tip))
    };
    let most = |tip: u128| crate::timer::record::max_cost(100_000, price(tip), 50_048, cell);
    // The three highest tips use all their cycles; the rest of the balance does not cover the
    // fourth.
    let spent = [109, 108].map(|tip| price(tip).saturating_mul(100_000));
    let enough = most(107).saturating_add(spent[0]).saturating_add(spent[1]);
    chain.fund(clock, enough);
    let execution = chain.push(vec![]);
    let fired: Vec<_> = execution.fires.iter().map(|fire| fire.timer_id).collect();
    assert_eq!(fired, [ids[9], ids[8], ids[7]]);
    let lost: Vec<_> = execution
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::TimerCancelledInsufficientFunds(TimerCancelledInsufficientFunds {
                timer_id,
                fee_payer,
                required,
                available,
                ..
            }) => {
                assert_eq!(*fee_payer, clock);
                assert!(available < required);
                Some(*timer_id)
            }
            _ => None,
        })
        .collect();
    assert_eq!(lost, [ids[6], ids[5], ids[4], ids[3], ids[2], ids[1], ids[0]]);
    assert_eq!((execution.lane.insolvent, execution.lane.deferred), (7, 0));
}

#[test]
fn an_agent_is_asked_when_its_timer_is_due() {
    let mut chain = chain();
    let clock = chain.clock();
    let agent = chain.deploy(AGENT);
    let bids = |chain: &mut Chain, handler: &str, payload: &str| {
        let call = calling(agent, handler, payload, Wei::ZERO);
        let signed = metered(chain, "alice", call, BUDGET);
        assert_eq!(chain.push(vec![signed]).receipts[0].status, ReceiptStatus::Success);
    };
    bids(&mut chain, "tip", "1");
    let at = chain.here() + 8;
    let asked = TimerRequest { gba: Some(agent), ..request(clock, at, "a") };
    let id = chain.schedule(asked);
    chain.until(at - 1);
    let execution = chain.push(vec![]);
    let fire = &execution.fires[0];
    assert_eq!((fire.timer_id, fire.priority_per_cycle), (id, Wei::new(1)));
    assert_eq!(fire.cycles.get(), fire.outcome.usage.cycles(), "the question is paid for apart");
    assert_eq!(execution.lane.asked, 1);
    assert!(execution.lane.questions > Wei::ZERO);
    assert_eq!(execution.lane.p50, Wei::new(1));

    // A failing agent bids by default, and so does a missing one.
    bids(&mut chain, "fail_from_now", "");
    let at = chain.here() + 8;
    for gba in [agent, clock, key("bob").address()] {
        chain.schedule(TimerRequest { gba: Some(gba), ..request(clock, at, "b") });
    }
    chain.until(at - 1);
    let execution = chain.push(vec![]);
    assert_eq!(execution.fires.len(), 3);
    let reasons: Vec<_> = execution
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::GbaFailed(failed) => Some(failed.reason.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(reasons.len(), 3);
    for expected in ["no bid today", "UnknownHandler", "UnknownActor"] {
        assert!(reasons.iter().any(|reason| reason.contains(expected)), "{expected}: {reasons:?}");
    }
}

#[test]
fn policies_differ_in_order_price_and_place() {
    let fires = |chain: &mut Chain| {
        let clock = chain.clock();
        let auction = chain.state.params().timers.policy == Policy::GbaAuction;
        let agents = [3u128, 9, 5].map(|tip| (tip, auction.then(|| chain.agent(tip))));
        let at = chain.here() + 20;
        let ids: Vec<_> = agents
            .map(|(tip, gba)| {
                chain.schedule(TimerRequest {
                    gba,
                    max_fee_per_cycle: Some(Wei::new(1_000_000)),
                    max_priority_fee_per_cycle: Some(Wei::new(tip)),
                    ..request(clock, at, &format!("tip {tip}"))
                })
            })
            .to_vec();
        chain.until(at - 1);
        let signed = chain.sign("bob", transfer("alice", Wei::new(1)));
        let execution = chain.push(vec![signed]);
        let place = |id: &Hash| ids.iter().position(|known| known == id).unwrap();
        let order: Vec<_> = execution.fires.iter().map(|f| place(&f.timer_id)).collect();
        let first = |name| kinds(&execution).iter().position(|kind| *kind == name).unwrap();
        let timers_first = first("TimerFired") < first("Transferred");
        let lane = execution.fires.iter().any(|fire| fire.charged.burned_lane > Wei::ZERO);
        let tips = execution.fires.iter().any(|fire| fire.charged.tip > Wei::ZERO);
        (order, timers_first, lane, tips)
    };
    assert_eq!(fires(&mut policy(Policy::Eip1559)), (vec![1, 2, 0], false, true, true));
    assert_eq!(fires(&mut policy(Policy::Fifo)), (vec![0, 1, 2], false, false, false));
    assert_eq!(fires(&mut policy(Policy::GbaAuction)), (vec![1, 2, 0], true, false, true));
}

#[test]
fn an_activation_switches_a_running_chain() {
    let mut chain = with(|params| {
        params.timers.policy = Policy::Fifo;
        let height = Height::new(12);
        params.timers.activation = Some(Activation { policy: Policy::Eip1559, height });
        params.timers.deprecation_blocks = 5;
    });
    let clock = chain.clock();
    let bid = |height| TimerRequest {
        bid: true,
        gas_limit: Some(100_000),
        ..request(clock, height, "old")
    };
    let ids = [8, 14].map(|height| chain.schedule(bid(height)));
    let fires = chain.until(8);
    assert_eq!(fires[0].timer_id, ids[0]);
    assert_eq!(fires[0].charged.burned_lane, Wei::ZERO);
    chain.until(11);
    let basefee = chain.state.basefee_cycle();
    assert_eq!(chain.state.lane().basefee, basefee, "a cycle of the lane was worth a cycle");
    let execution = chain.push(vec![]);
    assert!(kinds(&execution).contains(&"TimerPolicyActivated"));
    assert_eq!(execution.lane.policy, Policy::Eip1559);
    chain.schedule(bid(30));
    let fires = chain.until(14);
    assert_eq!(fires[0].timer_id, ids[1]);
    assert!(fires[0].charged.burned_lane > Wei::ZERO);
    chain.until(16);
    let error = chain.refused("alice", Payload::ScheduleTimer(Arc::new(bid(30))));
    assert!(error.starts_with("TimerArgDeprecated: "), "{error}");
}

#[test]
fn who_has_not_fired_goes_before_who_has() {
    let mut chain = chain();
    let [busy, quiet] = [chain.clock(), chain.clock()];
    let at = chain.here() + 100;
    let tipped = |actor, height| TimerRequest {
        max_fee_per_cycle: Some(Wei::new(100_000)),
        max_priority_fee_per_cycle: Some(Wei::new(10)),
        ..request(actor, height, "tick")
    };
    for n in 0..10 {
        chain.schedule(tipped(busy, at - 20 + n));
    }
    for actor in [busy, quiet, busy, quiet] {
        chain.schedule(tipped(actor, at));
    }
    let last = chain.until(at);
    let order: Vec<_> = last[10..].iter().map(|fire| fire.actor == quiet).collect();
    assert_eq!(order, [true, true, false, false]);
    assert_eq!(chain.state.fairness().recent(&busy), 12);
}

#[test]
fn dead_timers_go_on_a_budget_of_their_own() {
    let mut chain = with(|params| params.timers.config.gc_cycles_per_block = 3 * 200);
    let clock = chain.clock();
    let poor = chain.deploy(CLOCK);
    let at = chain.here() + 20;
    for _ in 0..7 {
        chain.schedule(request(poor, at, "tick"));
    }
    let live = chain.schedule(request(clock, at, "tick"));
    chain.until(at - 1);
    let execution = chain.push(vec![]);
    assert_eq!(execution.fires[0].timer_id, live, "expired timers do not block it");
    let counts = |execution: &Execution| (execution.lane.insolvent, execution.lane.deferred);
    assert_eq!(counts(&execution), (3, 4));
    assert_eq!(counts(&chain.push(vec![])), (3, 1));
    assert_eq!(counts(&chain.push(vec![])), (1, 0));
    assert!(chain.state.timers().is_empty());
}

/// 200,000 timers that expire at once do not delay live timers.
#[test]
fn a_storm_of_the_dead_does_not_delay_the_living() {
    const STORM: usize = 200_000;
    const PER_CALL: usize = 1_000;
    let mut chain = with(|params| params.timers.config.max_timers_per_actor = 1_000_000);
    let source = "def many(ctx, payload):\n  at = int(payload)\n  for n in range(1000):\n    \
                  pvm_host.schedule_timer(at, str(n), expires_at = at, gas_limit = 200000)\n";
    let crowd = chain.deploy(source);
    chain.fund(crowd, Wei::cby(100_000));
    let clock = chain.clock();
    let at = chain.here() + 40;
    let ids: Vec<_> = (1..=10).map(|n| chain.schedule(request(clock, at + n, "alive"))).collect();
    for _ in 0..STORM / PER_CALL / 20 {
        let nonce = chain.state.account(&key("alice").address()).nonce;
        let calls = (0..20).map(|n| {
            let call = calling(crowd, "many", &at.to_string(), Wei::ZERO);
            let (cycle, cell) = (chain.state.basefee_cycle(), chain.state.basefee_cell());
            Transaction::with_limits(chain.state.chain_id(), nonce + n, cycle, cell, call)
                .buying(Budget { cycles: 900_000, cells: 5_000 })
                .sign(&key("alice"))
        });
        let block = chain.block(calls.collect());
        let execution = execute(&chain.state, &block).unwrap();
        assert!(execution.receipts.iter().all(|receipt| receipt.status == ReceiptStatus::Success));
        chain.state = execution.state;
    }
    assert_eq!(chain.state.timers().len(), STORM + ids.len());
    let next = |chain: &mut Chain| {
        let block = chain.block(vec![]);
        let execution = execute(&chain.state, &block).unwrap();
        chain.state = execution.state.clone();
        execution
    };
    while chain.here() < at {
        next(&mut chain);
    }
    let mut storm = chain.state.timers().len() - ids.len();
    for (alive, id) in ids.into_iter().enumerate() {
        let Execution { fires, lane, state, .. } = next(&mut chain);
        assert!(fires.iter().any(|fire| fire.timer_id == id), "block {} {lane:?}", state.height());
        let expected = storm.min(25_000);
        assert_eq!((lane.fired, lane.expired), (1, expected as u64), "the GC budget holds");
        storm -= expected;
        assert_eq!(state.timers().len(), storm + 9 - alive);
    }
    assert_eq!(storm, 0, "eight blocks take them all");
}

#[test]
fn fires_are_told_with_their_figures() {
    let mut chain = chain();
    let clock = chain.clock();
    let at = chain.here() + 4;
    let id = chain.schedule(request(clock, at, "x"));
    chain.until(at - 1);
    let execution = chain.push(vec![]);
    let fire = &execution.fires[0];
    let told = TimerFired {
        timer_id: id,
        actor: clock,
        success: true,
        cycles: fire.cycles.get(),
        priority_per_cycle: Wei::ZERO,
    };
    assert!(execution.events.iter().any(|event| event.kind == EventKind::from(told.clone())));
    assert!(fire.cycles > Cycles::ZERO && fire.cells > Cells::ZERO);
    let bytes = crate::primitives::codec::to_vec(fire);
    assert_eq!(crate::primitives::codec::from_slice::<Fire>(&bytes).as_ref(), Ok(fire));
}

#[test]
fn numbers_of_timers_are_the_same_with_and_without_a_calendar() {
    let mut chain = with(|params| params.timers.config.max_ttl_blocks = 31_536_000);
    let clock = chain.clock();
    let here = chain.here();
    for ahead in [20, 20, 21, 3_700, 3_700, 9_000, 11_000, 5_000_000] {
        chain.schedule(request(clock, here + ahead, "x"));
    }
    let mut spin = request(clock, here + 20, "spin");
    spin.gas_limit = Some(300_000);
    chain.schedule(spin);
    chain.until(here + 20);
    let buckets = chain.state.timer_buckets();
    assert_eq!(buckets.ring.len() + buckets.epochs.len(), 4, "{buckets:?}");
    assert_eq!((buckets.carry_over, buckets.overflow), (1, 1));
    let restarted = State::from_bytes(&chain.state.to_bytes()).unwrap();
    assert_eq!(restarted.timer_buckets(), buckets);
    // The parent's calendar was handed to its child.
    let parent = chain.state.clone();
    chain.push(vec![]);
    assert_eq!(parent.timer_buckets(), buckets);
}

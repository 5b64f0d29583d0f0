//! Attacks by an actor, a payer or an agent on others, and their failure.

use super::*;
use crate::fees::meter;
use event::{AgentsAsked, TimerGasClamped, TimerScheduled};
use proptest::prelude::*;

/// Schedules what its payload says, and lets its caller pay.
const THIEF: &str = r#"
def take(ctx, payload):
    for n in range(int(payload)):
        pvm_host.schedule_timer(
            ctx.height + 2, str(n), fee_payer = ctx.sender, gas_limit = 100000,
            max_fee_per_cycle = 10000000, max_priority_fee_per_cycle = 9000000)

def handle_timer(ctx, payload):
    fail("and it costs")
"#;

fn calls(chain: &Chain, actor: Address, payload: &str, allowance: Wei) -> SignedTransaction {
    let sender = key("alice");
    let nonce = chain.state.account(&sender.address()).nonce;
    let (cycle, cell) = (chain.state.basefee_cycle(), chain.state.basefee_cell());
    let call = calling(actor, "take", payload, Wei::ZERO);
    Transaction::with_limits(chain.state.chain_id(), nonce, cycle, cell, call)
        .buying(BUDGET)
        .allowing(allowance)
        .sign(&sender)
}

#[test]
fn a_caller_pays_for_no_timers_unless_it_says_so() {
    let mut chain = chain();
    let thief = chain.deploy(THIEF);
    let signed = calls(&chain, thief, "1", Wei::ZERO);
    let execution = chain.push(vec![signed]);
    let error = execution.receipts[0].status.error().unwrap();
    assert!(error.contains("PayerNotWilling") && error.contains("timer_allowance"), "{error}");
    assert!(chain.state.timers().is_empty());
}

#[test]
fn a_caller_never_pays_more_for_timers_than_it_allows() {
    let mut chain = chain();
    let thief = chain.deploy(THIEF);
    // The allowance covers the cost of three timers, not four.
    let most = chain.state.timer_terms(Height::new(chain.here() + 1));
    let one = most.basefee_cycle.saturating_mul(2).saturating_add(Wei::new(10_000_000));
    let one = one.saturating_mul(100_000);
    let one = one.saturating_add(most.basefee_cell.saturating_mul(2 * 50_048));
    let allowed = one.saturating_mul(3);
    let refused = calls(&chain, thief, "4", allowed);
    assert!(chain.push(vec![refused]).receipts[0].status.error().is_some());
    let taken = calls(&chain, thief, "3", allowed);
    let execution = chain.push(vec![taken]);
    assert_eq!(execution.receipts[0].status, ReceiptStatus::Success);
    let ids = scheduled(&execution);
    let told = execution.events.iter().filter_map(|event| match &event.kind {
        EventKind::TimerScheduled(TimerScheduled { fee_payer, max_cost, .. }) => {
            assert_eq!(*fee_payer, key("alice").address());
            Some(*max_cost)
        }
        _ => None,
    });
    assert!(told.fold(Wei::ZERO, Wei::saturating_add) <= allowed);
    // The payer can cancel one; another account cannot.
    let cancel = Payload::CancelTimer(transaction::CancelTimer { timer_id: ids[0] });
    assert!(chain.refused("bob", cancel.clone()).starts_with("Unauthorized: "));
    let before = chain.balance("alice");
    let cancelled = chain.one("alice", cancel);
    assert_eq!(cancelled.receipts[0].status, ReceiptStatus::Success);
    let fee = cancelled.receipts[0].burned.saturating_add(cancelled.receipts[0].tip);
    let mut fired = cancelled.fires;
    fired.extend(chain.until(chain.here() + 5));
    assert_eq!(fired.len(), 2);
    let lost = before.checked_sub(chain.balance("alice")).unwrap().checked_sub(fee).unwrap();
    let paid = fired.iter().fold(Wei::ZERO, |sum, fire| sum.saturating_add(fire.charged.total()));
    assert_eq!(lost, paid);
    assert!(lost > Wei::ZERO && lost <= allowed);
    assert!(chain.state.timers().is_empty(), "nothing is left that could take more");
}

#[test]
fn a_fire_that_would_cost_more_than_was_promised_does_not_happen() {
    let mut chain = chain();
    let thief = chain.deploy(THIEF);
    let execution = {
        let signed = calls(&chain, thief, "1", Wei::cby(1_000_000));
        chain.push(vec![signed])
    };
    let id = scheduled(&execution)[0];
    let mut timer = chain.state.timer(&id).unwrap();
    timer.promised = Some(Wei::new(1_000));
    chain.state.timers.queue.replace(&timer);
    chain.until(timer.height.get() - 1);
    let before = chain.balance("alice");
    let execution = chain.push(vec![]);
    assert!(execution.fires.is_empty());
    assert!(kinds(&execution).contains(&"TimerCancelledInsufficientFunds"));
    assert_eq!(chain.balance("alice"), before);
    assert!(chain.state.timer(&id).is_none());
}

/// Fires one timer with an agent among an attacker's timers, and returns the execution of that
/// block.
fn among(chain: &mut Chain, attack: impl Fn(Address, u64) -> TimerRequest) -> (Execution, Hash) {
    let agent = chain.deploy(AGENT);
    let victim = chain.clock();
    let source = CLOCK.replace("def ping", "def pong");
    let attacker = chain.deploy(&source);
    let at = chain.here() + 400;
    for n in 0..300 {
        chain.schedule(attack(attacker, at - 1 - n % 3));
    }
    let call = calling(agent, "tip", "7", Wei::ZERO);
    let signed = metered(chain, "alice", call, BUDGET);
    chain.push(vec![signed]);
    let id = chain.schedule(TimerRequest { gba: Some(agent), ..request(victim, at, "v") });
    chain.until(at - 1);
    (chain.push(vec![]), id)
}

#[test]
fn timers_that_cannot_fire_keep_no_agent_from_being_asked() {
    // Above the cap, so that they wait forever.
    let mut chain = chain();
    let stuck = |actor, height| TimerRequest {
        gba: Some(actor),
        gas_limit: Some(300_000),
        ..request(actor, height, "x")
    };
    let (execution, id) = among(&mut chain, stuck);
    let fire = execution.fires.iter().find(|fire| fire.timer_id == id).expect("it fires");
    assert_eq!(fire.priority_per_cycle, Wei::new(7), "as its agent said");
    assert_eq!(execution.lane.asked, 1);
    assert!(!kinds(&execution).contains(&"GbaFailed"));
    // Without funds they are removed, whether or not their agents are asked.
    let mut chain = with(|params| params.timers.config.gc_cycles_per_block = 0);
    let broke = |actor, height| TimerRequest { gba: Some(actor), ..request(actor, height, "x") };
    let (execution, id) = among(&mut chain, broke);
    assert!(execution.fires.iter().any(|fire| fire.timer_id == id));
    assert_eq!((execution.lane.asked, execution.lane.deferred), (1, 300));
}

#[test]
fn owners_are_asked_in_turns_pay_for_it_and_are_told_of_failures_once() {
    // The lane is so small that nothing fires: each timer is due, and asks, in every block.
    let mut chain = with(|params| params.timers.config.lane_timer_cycles = 100_000);
    let [busy, quiet] = [chain.clock(), chain.clock()];
    let broken = key("bob").address();
    let at = chain.here() + 30;
    for n in 0..2_500u64 {
        let request = TimerRequest {
            gba: Some(broken),
            gas_limit: Some(100_000),
            ..request(busy, at, &n.to_string())
        };
        let mut terms = chain.state.timer_terms(Height::new(chain.here() + 1));
        terms.config.max_timers_per_actor = 10_000;
        let admitted = terms.admit(request, None).unwrap();
        let id = crate::primitives::keccak256(&[&n.to_be_bytes()]);
        chain.state.schedule_timer(&terms, id, admitted, &mut Vec::new()).unwrap();
    }
    let mut one = request(quiet, at, "quiet");
    (one.gba, one.gas_limit) = (Some(broken), Some(100_000));
    chain.schedule(one);
    chain.until(at - 1);
    let before = [busy, quiet].map(|owner| chain.state.account(&owner).balance);
    let execution = chain.push(vec![]);
    let bills: Vec<_> = execution
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::AgentsAsked(AgentsAsked { actor, timers, paid, .. }) => {
                Some((*actor, *timers, *paid))
            }
            _ => None,
        })
        .collect();
    assert_eq!(bills.len(), 2, "both owners: {bills:?}");
    for (owner, timers, paid) in bills {
        assert!(paid > Wei::ZERO);
        if owner == quiet {
            assert_eq!(timers, 1, "however many the other has");
            let after = chain.state.account(&quiet).balance;
            assert_eq!(before[1].checked_sub(after), Some(paid));
        }
    }
    let failed = |execution: &Execution| {
        kinds(execution).iter().filter(|kind| **kind == "GbaFailed").count() as u64
    };
    assert_eq!(failed(&execution), execution.lane.asked);
    // Each failure is reported once; owners that were not reached are asked in later blocks.
    let mut told = failed(&execution);
    let mut asked = execution.lane.asked;
    for _ in 0..5 {
        let next = chain.push(vec![]);
        told += failed(&next);
        asked += next.lane.asked;
    }
    assert!(asked > 3_000, "{asked}");
    assert!(told <= 2_501, "{told} of {asked}");
}

/// Writes the number of bytes in its payload.
const WRITER: &str = r#"
def handle_timer(ctx, payload):
    n = int(payload)
    for part in range(n // 1000 + 1):
        pvm_host.set_state(str(ctx.height) + "." + str(part), "x" * min(1000, n))
"#;

#[test]
fn no_block_of_fires_takes_more_cells_than_the_lane_has() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(24));
    let sizes = prop::collection::vec((0u64..60_000, 64u64..60_000, 0u128..9), 1..40);
    let cells = prop_oneof![Just(10_000u64), Just(60_000), Just(meter::MAX_BLOCK_CELLS)];
    runner
        .run(&(sizes, cells), |(sizes, cells)| {
            let mut chain = with(|params| params.timers.config.lane_timer_cells = cells);
            let writer = chain.deploy(WRITER);
            chain.fund(writer, Wei::cby(100_000));
            let at = chain.here() + 100;
            let mut expected = 0;
            for (n, (bytes, limit, tip)) in sizes.into_iter().enumerate() {
                let asks = TimerRequest {
                    cell_limit: Some(limit),
                    gas_limit: Some(200_000),
                    max_fee_per_cycle: Some(Wei::new(100_000)),
                    max_priority_fee_per_cycle: Some(Wei::new(tip)),
                    ..request(writer, at + n as u64 % 3, &bytes.to_string())
                };
                let payload = Payload::ScheduleTimer(Arc::new(asks));
                let status = chain.one("alice", payload).receipts[0].status.clone();
                let fits = limit <= chain.state.lane().config.cell_cap();
                prop_assert_eq!(status == ReceiptStatus::Success, fits);
                expected += usize::from(fits);
            }
            let (mut fired, mut blocks) = (0, 0);
            chain.until(at - 1);
            while fired < expected {
                let execution = chain.push(vec![]);
                let used: u64 = execution.fires.iter().map(|fire| fire.cells.get()).sum();
                prop_assert!(used <= cells, "{used} of {cells}");
                prop_assert_eq!(used, execution.lane.cells);
                fired += execution.fires.len();
                blocks += 1;
                prop_assert!(blocks < 200, "{fired} of {expected} fired");
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_fire_uses_no_more_cells_than_it_asked_for() {
    let mut chain = chain();
    let writer = chain.deploy(WRITER);
    chain.fund(writer, Wei::cby(100_000));
    let at = chain.here() + 10;
    let asks =
        |payload: &str| TimerRequest { cell_limit: Some(640), ..request(writer, at, payload) };
    let [small, large] = ["100", "5000"].map(|payload| chain.schedule(asks(payload)));
    let fires = chain.until(at);
    let of = |id| fires.iter().find(|fire| fire.timer_id == id).unwrap();
    assert_eq!(of(small).status, ReceiptStatus::Success);
    assert!(of(large).status.error().is_some(), "{:?}", of(large).status);
    assert!(of(large).cells.get() <= 640);
}

#[test]
fn what_is_bought_and_not_used_is_paid_for_in_part() {
    let mut chain = chain();
    let clock = chain.clock();
    let call = calling(clock, "seen", "", Wei::ZERO);
    let most = Budget { cycles: meter::MAX_BLOCK_CYCLES, cells: 1_000 };
    let signed = metered(&chain, "alice", call.clone(), most);
    let receipt = chain.push(vec![signed]).receipts.remove(0);
    assert_eq!(receipt.status, ReceiptStatus::Success);
    assert_eq!(receipt.cycles.get(), meter::MAX_BLOCK_CYCLES / 8);
    let used = receipt.actor.unwrap().usage.cycles() + meter::INTRINSIC_CYCLES;
    assert_eq!(receipt.unused.get(), receipt.cycles.get() - used);
    // A buyer of about what it uses pays only for its usage.
    let signed = metered(&chain, "alice", call, Budget { cycles: 5_000, cells: 1_000 });
    let receipt = chain.push(vec![signed]).receipts.remove(0);
    assert_eq!((receipt.cycles.get(), receipt.unused), (used, Cycles::ZERO));
    // System deployers set the share.
    let key = "system:fees:least_share_of_bought_cycles".into();
    let set = Payload::SetParameter(transaction::SetParameter { key, value: 1_000 });
    assert_eq!(chain.one("bob", set).receipts[0].status, ReceiptStatus::Success);
    let call = calling(clock, "seen", "", Wei::ZERO);
    let signed = metered(&chain, "alice", call, most);
    let receipt = chain.push(vec![signed]).receipts.remove(0);
    assert_eq!(receipt.cycles.get(), meter::MAX_BLOCK_CYCLES);
}

fn clamped(execution: &Execution) -> Vec<(Hash, u64, u64)> {
    let clamps = execution.events.iter().filter_map(|event| match &event.kind {
        EventKind::TimerGasClamped(TimerGasClamped { timer_id, gas_limit, gas_cap, .. }) => {
            Some((*timer_id, *gas_limit, *gas_cap))
        }
        _ => None,
    });
    clamps.collect()
}

#[test]
fn an_activation_strands_no_timer() {
    let mut chain = with(|params| {
        params.timers.policy = Policy::Fifo;
        let height = Height::new(14);
        params.timers.activation = Some(Activation { policy: Policy::Eip1559, height });
    });
    let clock = chain.clock();
    // One timer is due in the first block, one later; one waits since the last block under `fifo`.
    let ids = [14, 20].map(|height| chain.schedule(request(clock, height, "old")));
    assert_eq!(chain.state.timer(&ids[0]).unwrap().gas_limit, 550_000);
    chain.until(13);
    let first = chain.push(vec![]);
    assert_eq!(clamped(&first), [(ids[0], 550_000, 250_000)]);
    assert!(first.fires.iter().any(|fire| fire.timer_id == ids[0]), "{:?}", first.lane);
    chain.until(19);
    let later = chain.push(vec![]);
    assert_eq!(clamped(&later), [(ids[1], 550_000, 250_000)]);
    assert!(later.fires.iter().any(|fire| fire.timer_id == ids[1]));
    // A request for too much under the new policy is reported immediately, and waits.
    let asks = TimerRequest { gas_limit: Some(300_000), ..request(clock, 30, "new") };
    let new = chain.schedule(asks);
    assert!(chain.until(32).iter().all(|fire| fire.timer_id != new));
}

#[test]
fn a_lower_limit_strands_no_timer() {
    let mut chain = chain();
    let clock = chain.clock();
    let at = chain.here() + 20;
    let ids = [at, at + 10].map(|height| chain.schedule(request(clock, height, "old")));
    let set = |key: &str, value| {
        let key = key.to_owned();
        Payload::SetParameter(transaction::SetParameter { key, value })
    };
    let cap = "system:cip1:max_cycles_per_fire_auction_phase";
    assert_eq!(chain.one("bob", set(cap, 100_000)).receipts[0].status, ReceiptStatus::Success);
    chain.until(at - 1);
    let execution = chain.push(vec![]);
    assert_eq!(clamped(&execution), [(ids[0], 250_000, 100_000)]);
    assert_eq!(execution.fires.len(), 1);
    let cells = "system:cip5:lane_timer_cells";
    assert_eq!(chain.one("bob", set(cells, 1_000)).receipts[0].status, ReceiptStatus::Success);
    chain.until(at + 9);
    let execution = chain.push(vec![]);
    assert_eq!(clamped(&execution), [(ids[1], 250_000, 100_000)]);
    assert_eq!(execution.fires[0].timer_id, ids[1]);
}

#[test]
fn who_cannot_pay_is_removed_priced_out_or_not() {
    let mut chain = chain();
    let poor = chain.deploy(CLOCK);
    let rich = chain.clock();
    let at = chain.here() + 6;
    let low = |actor, chain: &Chain| TimerRequest {
        max_fee_per_cycle: Some(chain.state.lane().basefee),
        max_priority_fee_per_cycle: Some(Wei::ZERO),
        ..request(actor, at, "x")
    };
    let ids = [poor, rich].map(|actor| {
        let request = low(actor, &chain);
        chain.schedule(request)
    });
    chain.until(at - 1);
    chain.state.timers.lane.basefee = Wei::new(1_000_000);
    let block = chain.block(vec![]);
    let execution = execute(&chain.state, &block).unwrap();
    assert_eq!((execution.lane.insolvent, execution.lane.priced_out), (1, 1));
    assert!(execution.state.timer(&ids[0]).is_none());
    assert!(execution.state.timer(&ids[1]).is_some());
}

/// A busy actor that chooses low timer ids, and a quiet one: without tips, the actor that has fired
/// less goes first.
#[test]
fn low_ids_win_nothing() {
    let mut chain = with(|params| params.timers.config.lane_timer_cycles = 200_000);
    let [busy, quiet] = [chain.clock(), chain.clock()];
    let begin = chain.here() + 200;
    let ask = |actor, height, payload: String| TimerRequest {
        gas_limit: Some(100_000),
        max_fee_per_cycle: Some(Wei::new(1_000_000)),
        max_priority_fee_per_cycle: Some(Wei::ZERO),
        ..request(actor, height, &payload)
    };
    // In each block the busy actor schedules the eight timers with the lowest ids of many
    // candidates, and the other actor one. Two fit.
    for block in 0..12u64 {
        let mut candidates: Vec<_> = (0..60)
            .map(|n| {
                let payload = format!("spin{block}.{n}");
                let nonce = chain.state.account(&key("alice").address()).nonce;
                let height = Height::new(begin + block);
                let id = crate::timer::record::timer_id(&busy, height, payload.as_bytes(), nonce);
                (id, payload)
            })
            .collect();
        candidates.sort();
        for (_, payload) in candidates.into_iter().take(8) {
            chain.schedule(ask(busy, begin + block, payload));
        }
        chain.schedule(ask(quiet, begin + block, "spin".to_owned()));
    }
    let mut by = [0, 0];
    chain.until(begin - 1);
    for _ in 0..12 {
        for fire in chain.push(vec![]).fires {
            by[usize::from(fire.actor == quiet)] += 1;
        }
    }
    assert!(by[1] >= 9, "the quiet actor's fired: {by:?}");
}

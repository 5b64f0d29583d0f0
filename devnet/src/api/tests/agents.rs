//! Agents over the API: their bids, ranks and reasons of due timers, burn by lane.

use super::fixture::*;
use crate::{
    client::ClientError,
    types::{
        AgentState, AmountText, Bytes, DryRun, DryRunRequest, DueFate, DueQuery, ErrorCode,
        LaneQuery, Text,
    },
};
use cowboy_engine::{
    chain::{Payload, transaction::Transfer},
    primitives::{Address, Height, Wei},
    timer::{Policy, TimerRequest},
};

/// Runs a loop, and is its own agent: bids twice the price and the tip of its context.
const BIDDER: &str = r#"
def handle_timer(ctx, payload):
    for _ in range(100):
        pass

def tip(ctx, payload):
    pvm_host.set_state("tip", int(payload))

def getGasBid(context: GBAContext) -> TxFeeParams:
    tip = pvm_host.get_state("tip")
    if tip == None:
        fail("no tip today")
    return TxFeeParams(
        max_fee_per_cycle = 2 * context.basefee_lane_timer + tip,
        max_priority_fee_per_cycle = tip,
        max_fee_per_cell = context.basefee_cell,
        max_priority_fee_per_cell = 0,
    )
"#;

fn request(actor: Address, height: u64, gba: Option<Address>) -> TimerRequest {
    let gas_limit = Some(15_000);
    TimerRequest { actor, height: Height::new(height), gba, gas_limit, ..TimerRequest::default() }
}

impl Devnet {
    fn bidder(&mut self, money: Wei) -> Address {
        let bidder = self.deploy_module(BIDDER);
        let pay = self.sign("faucet", Payload::Transfer(Transfer { to: bidder, amount: money }));
        self.push(vec![pay]);
        bidder
    }

    async fn asked(&self, agent: Address, payload: &str) -> Result<DryRun, ClientError> {
        let request = DryRunRequest {
            sender: "dev-0".to_owned(),
            handler: "getGasBid".to_owned(),
            payload: Text(Bytes(payload.as_bytes().to_vec())),
            value: AmountText::default(),
            cycles: None,
            cells: None,
            timer_allowance: None,
            at: None,
            ask_agent: None,
            trace: None,
            profile: None,
            source: None,
        };
        self.client.dry_run(&agent.to_string(), &request).await
    }
}

#[tokio::test]
async fn due_timers_are_ranked_and_say_why_they_wait() {
    let mut devnet = Devnet::of(|params| {
        params.timers.policy = Policy::GbaAuction;
        params.timers.config.lane_timer_cycles = 30_000;
    })
    .await;
    let (rich, poor) = (devnet.bidder(Wei::cby(1_000)), devnet.bidder(Wei::new(1)));
    devnet.call(rich, "tip", "7");
    let at = devnet.state.height().get() + 3;
    let one = |actor| request(actor, at, Some(rich));
    let ids = devnet.schedule(vec![one(rich), one(rich), one(rich), one(rich), one(poor)]);

    // Timers are ranked only when they are due in the next block.
    let early = devnet.client.timers_due(&DueQuery::default()).await.unwrap();
    assert_eq!((early.due, early.timers.len()), (0, 0));
    let quote = devnet.client.timer_bid(&ids[0].to_string()[..14]).await.unwrap();
    assert_eq!(*quote.timer_id, ids[0]);
    assert!(quote.not_asked.as_ref().unwrap().contains("not due"), "{quote:?}");
    assert_eq!((quote.rank, quote.ranked, quote.next), (Some(1), 1, DueFate::Fires));
    assert_eq!(quote.effective_tip.map(|tip| tip.get()), Some(7));
    assert_eq!(quote.context.trigger_block_height, at);
    assert!(quote.success && quote.cycles > 0 && quote.paid_cycles >= 1_000);
    assert_eq!(quote.cost.get(), quote.cycle_price.get() * u128::from(quote.paid_cycles));

    devnet.push_empty(2);
    let page = devnet.client.timers_due(&DueQuery::default()).await.unwrap();
    assert_eq!((page.height, page.policy.as_str(), page.capacity), (at + 1, "gba-auction", 30_000));
    assert_eq!((page.due, page.ranked, page.timers.len()), (3, 2, 3));
    let waits: Vec<_> = page.timers.iter().map(|timer| (timer.rank, timer.next)).collect();
    let expected =
        [(Some(1), DueFate::Fires), (Some(2), DueFate::Fires), (None, DueFate::InsufficientFunds)];
    assert_eq!(waits, expected, "{page:?}");
    let first = &page.timers[0];
    assert_eq!((first.agent, first.weight_per_mille), (AgentState::Asked, Some(1_000)));
    assert_eq!(first.effective_tip.map(|tip| tip.get()), Some(7));
    assert_eq!(first.reason.map(|reason| format!("{reason:?}")).as_deref(), Some("LaneFull"));
    assert!(first.explanation.as_ref().unwrap().contains("came first"), "{first:?}");
    let last = &page.timers[2];
    assert_eq!((*last.actor, last.agent), (poor, AgentState::NotAsked));
    assert!(last.not_asked.as_ref().unwrap().contains("payer cannot pay"), "{last:?}");
    assert!(last.outlook.contains("it waits for funds"), "{last:?}");
    // A page, and the timers of one actor.
    let some = DueQuery { offset: Some(1), limit: Some(1), ..DueQuery::default() };
    let some = devnet.client.timers_due(&some).await.unwrap();
    assert_eq!((some.timers.as_slice(), some.next), (&page.timers[1..2], Some(2)));
    let of = DueQuery { actor: Some(poor.to_string()), ..DueQuery::default() };
    let of = devnet.client.timers_due(&of).await.unwrap();
    assert_eq!((of.timers.as_slice(), of.next), (&page.timers[2..], None));

    devnet.push_empty(1);
    let fired = devnet.client.timer(&first.timer_id.to_string()).await.unwrap();
    assert_eq!(fired.fired_at, Some(at + 1), "as it was said");
    // The fires count under this policy too.
    let fairness = devnet.client.timer_fairness().await.unwrap();
    let members: Vec<_> =
        fairness.members.iter().map(|m| (*m.account, m.recent, m.weight_per_mille)).collect();
    assert_eq!(members, [(rich, 4, 1_000)]);
}

#[tokio::test]
async fn a_timer_that_fired_on_its_first_bid_was_asked() {
    let mut devnet = Devnet::new().await;
    let bidder = devnet.bidder(Wei::cby(1_000));
    devnet.call(bidder, "tip", "5");
    let at = devnet.state.height().get() + 3;
    let ids = devnet.schedule(vec![request(bidder, at, Some(bidder)), request(bidder, at, None)]);
    devnet.push_empty(2);
    let timer = devnet.client.timer(&ids[0].to_string()).await.unwrap();
    assert_eq!(timer.fired_at, Some(at));
    let bid = timer.bid.expect("it was asked in the block of its fire");
    assert_eq!((bid.max_priority_fee_per_cycle.get(), bid.failed), (5, false));

    for (id, text) in [(&ids[0], "is waiting"), (&ids[1], "is waiting")] {
        let error = devnet.client.timer_bid(&id.to_string()).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::Conflict), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    let own = devnet.schedule(vec![request(bidder, at + 50, None)])[0];
    let error = devnet.client.timer_bid(&own.to_string()).await.unwrap_err();
    assert!(error.to_string().contains("NoAgent"), "{error}");
}

#[tokio::test]
async fn an_agent_that_fails_is_quoted_with_its_reason() {
    let mut devnet = Devnet::new().await;
    let bidder = devnet.bidder(Wei::cby(1_000));
    let at = devnet.state.height().get() + 9;
    let id = devnet.schedule(vec![request(bidder, at, Some(bidder))])[0];
    let quote = devnet.client.timer_bid(&id.to_string()).await.unwrap();
    assert!(!quote.success && quote.error.unwrap().contains("no tip today"));
    assert!(quote.bid.failed, "the default bid counts");
    let lane = quote.context.basefee_lane_timer.get();
    assert_eq!(quote.bid.max_fee_per_cycle.get(), 2 * lane);
}

#[tokio::test]
async fn a_dry_run_asks_an_agents_function() {
    let mut devnet = Devnet::new().await;
    let bidder = devnet.bidder(Wei::cby(1_000));
    devnet.call(bidder, "tip", "5");
    let root = devnet.state.root();
    let asked = devnet.asked(bidder, "").await.unwrap();
    let lane = devnet.state.lane_basefee(devnet.state.height().next());
    let result = asked.result.unwrap();
    assert!(asked.success && asked.usage.cycles > 0);
    assert_eq!(result["max_fee_per_cycle"].as_u64().map(u128::from), Some(2 * lane.get() + 5));
    let given = r#"{"basefee_lane_timer": 1000, "owner_actor_balance": "340282366920938463463"}"#;
    let asked = devnet.asked(bidder, given).await.unwrap();
    assert_eq!(asked.result.unwrap()["max_fee_per_cycle"], 2_005);
    for (payload, text) in [
        (r#"{"nothing": 1}"#, "GBAContext has no field `nothing`"),
        (r#"{"basefee_cycle": -1}"#, "is not an integer"),
        ("[1]", "is not a JSON object"),
    ] {
        let error = devnet.asked(bidder, payload).await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::BadRequest), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    assert_eq!(devnet.state.root(), root);
}

#[tokio::test]
async fn a_lane_without_a_price_of_its_own_costs_the_cycle_basefee() {
    for policy in [Policy::Fifo, Policy::GbaAuction, Policy::Eip1559] {
        let mut devnet = Devnet::of(|params| params.timers.policy = policy).await;
        let cycle = devnet.state.basefee_cycle();
        let lane = devnet.state.lane_basefee(devnet.state.height().next());
        devnet.push_empty(1);
        let query = LaneQuery { from: None, limit: Some(1) };
        let [block] = devnet.client.timer_fees(&query).await.unwrap().try_into().unwrap();
        let own = if policy == Policy::Eip1559 { lane } else { cycle };
        assert_eq!(*block.lane_basefee, own, "{policy}");
        assert_eq!(*block.cycle_price, cycle.saturating_add(lane), "{policy}");
        assert!(!block.lane_basefee.is_zero());
    }
}

#[tokio::test]
async fn burn_is_told_by_lane() {
    let mut devnet = Devnet::new().await;
    let bidder = devnet.bidder(Wei::cby(1_000));
    let at = devnet.state.height().get() + 3;
    devnet.schedule(vec![request(bidder, at, Some(bidder))]);
    devnet.push_empty(2);
    let burned = devnet.client.burned().await.unwrap();
    let parts = [
        &burned.transactions,
        &burned.timers,
        &burned.questions,
        &burned.callbacks,
        &burned.penalties,
    ];
    let sum: u128 = parts.iter().map(|part| part.get()).sum();
    assert_eq!((burned.height, burned.total.get()), (at, sum));
    assert!(parts[..3].iter().all(|part| part.get() > 0), "{burned:?}");
    let status = devnet.client.status().await.unwrap();
    assert_eq!(status.supply.unwrap().burned.get(), sum);
    let lane = burned.lane_basefee.get();
    assert!(lane > 0 && lane < burned.timers.get() + burned.questions.get());
}

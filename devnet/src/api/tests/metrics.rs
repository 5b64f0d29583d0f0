//! The timer lane's metrics over the API: they are always present, and each block counts once.

use super::fixture::*;
use cowboy_engine::{
    chain::{
        LaneReport, Payload,
        transaction::{SetParameter, Transfer},
    },
    primitives::{Address, Height, Wei},
    timer::{Policy, TimerRequest},
};
use cowboy_host::openmetrics::{CONTENT_TYPE, samples};
use std::{collections::BTreeMap, sync::Arc};

const CLOCK: &str = r#"
def handle_timer(ctx, payload):
    pvm_host.log("at", ctx.height)

def getGasBid(context: GBAContext) -> TxFeeParams:
    fail("no bid today")
"#;

/// An actor of `dev-0` with this balance.
fn clock(devnet: &mut Devnet, money: Wei) -> Address {
    let clock = devnet.deploy_module(CLOCK);
    let pay = devnet.sign("faucet", Payload::Transfer(Transfer { to: clock, amount: money }));
    devnet.push(vec![pay]);
    clock
}

fn request(actor: Address, height: u64) -> TimerRequest {
    TimerRequest { actor, height: Height::new(height), ..TimerRequest::default() }
}

/// Schedules timers in one block.
fn schedule(devnet: &mut Devnet, requests: Vec<TimerRequest>) {
    let nonce = devnet.state.account(&address("dev-0")).nonce;
    let signed = requests.into_iter().zip(nonce..).map(|(request, nonce)| {
        devnet.sign_at("dev-0", nonce, Payload::ScheduleTimer(Arc::new(request)))
    });
    let signed = signed.collect();
    devnet.push(signed);
}

/// The report of a block's lane.
fn report(devnet: &Devnet, height: u64) -> LaneReport {
    let height = Height::new(height);
    devnet.store(0).lanes(height, height).unwrap()[0].report
}

/// The lane's series without their prefix.
async fn scrape(devnet: &Devnet) -> BTreeMap<String, u64> {
    let text = devnet.client.metrics().await.unwrap();
    let lane = samples(&text).into_iter().filter_map(|(series, value)| {
        Some((series.strip_prefix("timer_lane_")?.to_owned(), value as u64))
    });
    lane.collect()
}

fn check(scraped: &BTreeMap<String, u64>, expected: &[(&str, u64)]) {
    for (series, value) in expected {
        assert_eq!(scraped.get(*series), Some(value), "{series} of {scraped:#?}");
    }
}

/// An amount with the precision of metrics.
fn rounded(wei: Wei) -> u64 {
    wei.get() as f64 as u64
}

#[tokio::test]
async fn a_devnet_without_an_agent_has_the_lanes_metrics() {
    let devnet = Devnet::new().await;
    let response = devnet.get("/metrics").await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], CONTENT_TYPE);
    let text = response.text().await.unwrap();
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    assert!(samples(&text).contains_key("devnet_log_lines_lost_total"), "{text}");
    let scraped = scrape(&devnet).await;
    check(&scraped, &[("due", 0), ("queued", 0), ("fired_total", 0), ("burned_wei", 0)]);
    check(&scraped, &[("cycle_basefee_wei", rounded(devnet.state.basefee_cycle()))]);
}

#[tokio::test]
async fn fires_count_with_what_they_used() {
    let mut devnet = Devnet::new().await;
    let clock = clock(&mut devnet, Wei::cby(1_000));
    let at = devnet.state.height().get() + 3;
    let requests = [at, at, at + 1_000].map(|height| request(clock, height));
    schedule(&mut devnet, requests.into());
    devnet.push_empty(1);
    check(&scrape(&devnet).await, &[("queued", 3), ("fired_total", 0), ("used_cycles", 0)]);

    devnet.push_empty(1);
    let (fires, state) = (report(&devnet, at), &devnet.state);
    assert!(fires.consumed > 0 && fires.cells > 0 && !state.lane().burned.is_zero());
    let scraped = scrape(&devnet).await;
    check(
        &scraped,
        &[
            ("queued", 1),
            ("due", 0),
            ("fired_total", 2),
            ("used_cycles", fires.consumed),
            ("free_cycles", fires.capacity - fires.consumed),
            ("cycles_total", fires.consumed),
            ("used_cells", fires.cells),
            ("free_cells", fires.cell_capacity - fires.cells),
            ("cells_total", fires.cells),
            ("basefee_wei", rounded(state.lane_basefee(state.height().next()))),
            ("cycle_basefee_wei", rounded(state.basefee_cycle())),
            ("burned_wei", rounded(state.lane().burned)),
        ],
    );
    assert_eq!(scrape(&devnet).await, scraped);

    devnet.push_empty(1);
    let counted = [("fired_total", 2), ("cycles_total", fires.consumed), ("used_cycles", 0)];
    check(&scrape(&devnet).await, &counted);
}

#[tokio::test]
async fn each_block_counts_once_whichever_validator_answers() {
    let mut devnet = Devnet::new().await;
    let clock = clock(&mut devnet, Wei::cby(1_000));
    let at = devnet.state.height().get() + 2;
    schedule(&mut devnet, vec![request(clock, at), request(clock, at + 1)]);
    devnet.push_empty(1);
    devnet.push_to(&[1], vec![], vec![]);
    check(&scrape(&devnet).await, &[("fired_total", 2), ("queued", 0)]);

    // The other validator has one block less, so no block is counted again.
    devnet.backend.slot("validator-1").unwrap().set_stopped();
    let behind = scrape(&devnet).await;
    check(&behind, &[("fired_total", 2), ("queued", 1)]);
    devnet.backend.slot("validator-0").unwrap().set_stopped();
    assert_eq!(scrape(&devnet).await, behind, "no validator runs");
    devnet.client.start_validator("validator-1").await.unwrap();
    check(&scrape(&devnet).await, &[("fired_total", 2), ("queued", 0)]);
    devnet.push_to(&[1], vec![], vec![]);
    check(&scrape(&devnet).await, &[("fired_total", 2), ("queued", 0)]);
}

#[tokio::test]
async fn timers_that_wait_go_or_are_held_to_lower_limits_are_told_apart() {
    let mut devnet = Devnet::of(|params| params.system_deployers = vec![address("faucet")]).await;
    let (rich, poor) = (clock(&mut devnet, Wei::cby(1_000)), clock(&mut devnet, Wei::new(1)));
    let at = devnet.state.height().get() + 2;
    let with = |actor, height, gas_limit| TimerRequest {
        gas_limit: Some(gas_limit),
        ..request(actor, height)
    };
    schedule(
        &mut devnet,
        vec![
            TimerRequest { expires_at: Some(Height::new(at + 1)), ..with(rich, at, 300_000) },
            with(poor, at, 100),
            with(rich, at + 3, 200_000),
        ],
    );
    devnet.push_empty(1);
    let (over_cap, other) = ("deferred{reason=\"over_cap\"}", "deferred{reason=\"other\"}");
    let (expired, unpaid) =
        ("removed_total{reason=\"expired\"}", "removed_total{reason=\"insufficient_funds\"}");
    let scraped = scrape(&devnet).await;
    check(&scraped, &[("due", 1), (over_cap, 1), (other, 0), (expired, 0), (unpaid, 1)]);

    devnet.push_empty(1);
    let key = "system:cip1:max_cycles_per_fire_auction_phase".to_owned();
    let lower = Payload::SetParameter(SetParameter { key, value: 100_000 });
    let lower = devnet.sign("faucet", lower);
    devnet.push(vec![lower]);
    let scraped = scrape(&devnet).await;
    check(&scraped, &[("due", 0), (over_cap, 0), (expired, 1), (unpaid, 1), ("queued", 1)]);
    check(&scraped, &[("clamped_total", 0), ("fired_total", 0)]);
    devnet.push_empty(1);
    let scraped = scrape(&devnet).await;
    check(&scraped, &[("clamped_total", 1), ("fired_total", 1), ("queued", 0)]);
}

#[tokio::test]
async fn questions_to_agents_count_with_what_they_cost() {
    let mut devnet = Devnet::of(|params| params.timers.policy = Policy::GbaAuction).await;
    let clock = clock(&mut devnet, Wei::cby(1_000));
    let at = devnet.state.height().get() + 3;
    schedule(&mut devnet, vec![TimerRequest { gba: Some(clock), ..request(clock, at) }]);
    devnet.push_empty(2);
    let asked = report(&devnet, at);
    assert!(!asked.questions.is_zero());
    let cost = rounded(asked.questions);
    let told = [("agents_asked_total", 1), ("agents_failed_total", 1), ("fired_total", 1)];
    let scraped = scrape(&devnet).await;
    check(&scraped, &told);
    check(&scraped, &[("questions_wei_total", cost), ("basefee_wei", 0)]);
}

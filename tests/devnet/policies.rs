//! One scenario under the three policies of timers, on devnets: the order and the price of fires.
//!
//! ```text
//! cargo nextest run --locked -p cowboyctl --test devnet --no-capture policies
//! ```
//!
//! prints it, as the example `policies` does for a chain in memory: `early` schedules first and
//! pays little, `spammer` has the most timers, `keen` comes last and pays well. All are due in the
//! same block, in which ten fires fit.

use crate::{
    support::{Home, list},
    timers::{HEARTBEAT, number, text},
};
use serde_json::{Value, json};
use std::fs;

const SPAMMER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/actors/spammer.star");
const DEFAULT_AGENT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/actors/default_gba.star");

/// Makes all of them schedule in one transaction, one after the other, so that all timers are due
/// in the same block.
const CONDUCTOR: &str = r#"
def begin(ctx, payload):
    for actor, terms in json_decode(payload):
        pvm_host.send_message(actor, "fill", terms)
"#;

/// Name, timers, priority in wei per cycle.
const ACTORS: [(&str, u64, u64); 3] = [("early", 8, 1), ("spammer", 20, 50), ("keen", 4, 500)];
/// Number of blocks until all timers have fired.
const BLOCKS: u64 = 4;
/// Iterations of a timer's loop, which asks for 20,000 cycles and uses about 15,000.
const SPIN: u64 = 120;
/// Cycles for ten such fires, or three in a third and five in a half: the last one still finds
/// 20,000 cycles, another one does not.
const LANE: u64 = 165_000;
/// In wei per cycle. An eighth of it rounds to zero, so an empty lane keeps it during the setup; a
/// full one raises it by one.
const LANE_BASEFEE: u64 = 7;

/// The lane's fires in a block.
struct Line {
    height: u64,
    /// Wei per cycle.
    basefee: String,
    /// The initials of the actors that fired, in order.
    fired: String,
    /// Priority that each of them paid to the proposer, in wei per cycle.
    priorities: Vec<u128>,
    waiting: u64,
    priced_out: u64,
}

/// The totals of an actor's timers, in wei and cycles.
#[derive(Default)]
struct Account {
    fires: u64,
    cycles: u128,
    /// Sum of the blocks that its timers waited.
    waited: u64,
    burned_cycle: u128,
    burned_lane: u128,
    tip: u128,
}

/// The scenario's results under a policy.
struct Outcome {
    lines: Vec<Line>,
    accounts: [Account; 3],
    /// The timers in the order in which they were scheduled, and then in which they fired.
    scheduled: Vec<String>,
    fired: Vec<String>,
    /// Whether timers come before the transactions of their block.
    timers_first: bool,
}

fn amount(value: &Value) -> u128 {
    text(value).parse().unwrap()
}

fn run(policy: &str) -> Outcome {
    let home = boot(policy);
    let actors = ACTORS.map(|_| spammer(&home));
    let (scheduled, due) = begin(&home, policy, &actors);
    home.wait_height(due + BLOCKS - 1);

    let place = |of: &Value| actors.iter().position(|actor| actor == of).expect("one of ours");
    let mut lines = Vec::new();
    let mut accounts = ACTORS.map(|_| Account::default());
    let mut fired = Vec::new();
    let args = ["--from", &due.to_string(), "--limit", &BLOCKS.to_string()];
    let lanes = home.json(&[&["timer", "fees"], &args[..]].concat());
    for lane in list(&lanes) {
        let height = number(&lane["height"]);
        let block = home.json(&["chain", "block", &height.to_string()]);
        let (mut initials, mut priorities) = (String::new(), Vec::new());
        for fire in list(&block["fires"]) {
            let place = place(&fire["actor"]);
            initials.push(ACTORS[place].0.as_bytes()[0].into());
            priorities.push(amount(&fire["priority_per_cycle"]));
            fired.push(text(&fire["timer_id"]).to_owned());
            let shown = home.json(&["timer", "show", text(&fire["timer_id"])]);
            let (charged, account) = (&shown["charged"], &mut accounts[place]);
            account.fires += 1;
            account.cycles += u128::from(number(&fire["cycles"]));
            account.waited += height - number(&fire["due_at"]);
            account.burned_cycle += amount(&charged["burned_cycle"]);
            account.burned_lane += amount(&charged["burned_lane"]);
            account.tip += amount(&charged["tip"]);
        }
        lines.push(Line {
            height,
            basefee: text(&lane["lane_basefee"]).to_owned(),
            fired: initials,
            priorities,
            waiting: number(&lane["deferred"]),
            priced_out: number(&lane["priced_out"]),
        });
    }
    let timers_first = timers_come_first(&home, policy);
    let outcome = Outcome { lines, accounts, scheduled, fired, timers_first };
    print(policy, &outcome);
    outcome
}

/// Boots a devnet whose lane is small.
fn boot(policy: &str) -> Home {
    let home = Home::new();
    let topology = home.path("topology.yaml");
    let yaml = json!({
        "name": "local",
        "validators": 1,
        "runners": 0,
        "timers": {
            "policy": policy,
            "genesis_lane_basefee": format!("{LANE_BASEFEE}wei"),
            "lane_timer_cycles": LANE,
            "max_cycles_per_fire": 20_000,
            "max_cycles_per_fire_auction_phase": 20_000,
        },
    });
    fs::write(&topology, yaml.to_string()).unwrap();
    home.up(&["-f", topology.to_str().unwrap(), "--wait", "2"]);
    home
}

fn spammer(home: &Home) -> String {
    let deployed = home.json(&["actor", "deploy", SPAMMER]);
    let actor = text(&deployed["actor"]);
    home.json(&["account", "fund", actor, "1000cby"]);
    actor.to_owned()
}

/// Schedules all actors' timers; returns them in order, and the height that they are due at.
fn begin(home: &Home, policy: &str, actors: &[String]) -> (Vec<String>, u64) {
    let file = home.path("conductor.star");
    fs::write(&file, CONDUCTOR).unwrap();
    let conductor = home.json(&["actor", "deploy", file.to_str().unwrap()]);
    let terms: Vec<_> = actors
        .iter()
        .zip(ACTORS)
        .map(|(actor, (name, timers, tip))| {
            // `early` pays at most the lane's current price, if the policy has one.
            let poor = name == "early" && policy == "eip1559";
            let max_fee = if poor { LANE_BASEFEE + tip } else { 1_000_000 };
            let terms = json!({
                "timers": timers, "in": 2, "spin": SPIN, "max_fee": max_fee, "tip": tip,
                "agent": policy == "gba-auction",
            });
            json!([actor, terms.to_string()])
        })
        .collect();
    let terms = Value::from(terms).to_string();
    let begun = home.json(&["actor", "call", text(&conductor["actor"]), "begin", &terms]);
    let events: Vec<_> = list(&begun["events"])
        .iter()
        .filter(|event| event["kind"] == "TimerScheduled")
        .map(|event| &event["data"])
        .collect();
    let due = number(&begun["height"]) + 2;
    assert!(events.iter().all(|timer| number(&timer["height"]) == due), "{begun}");
    let ids: Vec<_> = events.iter().map(|timer| text(&timer["timer_id"]).to_owned()).collect();
    (ids, due)
}

/// Whether timers fire before the transactions of their block. A timer that fires in every block
/// also fires in a transaction's block.
fn timers_come_first(home: &Home, policy: &str) -> bool {
    let deployed = home.json(&["actor", "deploy", HEARTBEAT]);
    let heart = text(&deployed["actor"]);
    home.json(&["account", "fund", heart, "1000cby"]);
    let every = ["timer", "schedule", heart, "--every", "1", "--wait", "--timeout", "60s"];
    match policy {
        "gba-auction" => {
            let agent = home.json(&["actor", "deploy", DEFAULT_AGENT]);
            home.json(&[&every[..], &["--gba", text(&agent["actor"])]].concat())
        }
        _ => home.json(&every),
    };
    let sent = home.json(&["account", "transfer", "dev-0", "dev-1", "1wei"]);
    let block = home.json(&["chain", "block", &sent["height"].to_string()]);
    let first = |kind: &str| list(&block["events"]).iter().position(|event| event["kind"] == kind);
    let (fired, transferred) = (first("TimerFired"), first("Transferred"));
    assert!(fired.is_some() && transferred.is_some(), "{block}");
    fired < transferred
}

#[expect(clippy::print_stdout, reason = "the test shows what it compares")]
fn print(policy: &str, outcome: &Outcome) {
    let place = if outcome.timers_first { "before" } else { "after" };
    println!("\n{policy}: timers fire {place} the transactions of their block\n");
    println!(
        "  {:>6}  {:>12}  {:<10}  {:>7}  {:>10}",
        "block", "lane basefee", "fired", "waiting", "priced out"
    );
    for Line { height, basefee, fired, waiting, priced_out, .. } in &outcome.lines {
        println!("  {height:>6}  {basefee:>12}  {fired:<10}  {waiting:>7}  {priced_out:>10}");
    }
    println!(
        "\n  {:<8}  {:>5}  {:>11}  {:>27}",
        "", "fires", "blocks late", "wei per cycle, burned and tip"
    );
    for (account, (name, ..)) in outcome.accounts.iter().zip(ACTORS) {
        let per_cycle = |amount: u128| amount / account.cycles.max(1);
        let late = account.waited * 10 / account.fires.max(1);
        println!(
            "  {name:<8}  {:>5}  {:>9}.{}  {:>7} + {:>6} lane + {:>4}",
            account.fires,
            late / 10,
            late % 10,
            per_cycle(account.burned_cycle),
            per_cycle(account.burned_lane),
            per_cycle(account.tip),
        );
    }
}

/// Runs the scenario: each timer fires once, in the expected order.
fn check(policy: &str, fired: [&str; BLOCKS as usize], timers_first: bool) -> Outcome {
    let outcome = run(policy);
    let lines: Vec<_> = outcome.lines.iter().map(|line| line.fired.as_str()).collect();
    assert_eq!(lines, fired);
    assert_eq!(outcome.timers_first, timers_first);
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    assert_eq!(sorted(outcome.fired.clone()), sorted(outcome.scheduled.clone()));
    let fires = outcome.accounts.each_ref().map(|account| account.fires);
    assert_eq!(fires, ACTORS.map(|(_, timers, _)| timers));
    outcome
}

/// The highest price first. The lane's price rises until the poor are priced out, and falls again.
#[test]
fn eip1559_goes_by_price() {
    let fired = ["kkkkssssss", "ssssssssss", "ssss", "eeeeeeee"];
    let outcome = check("eip1559", fired, false);
    for line in &outcome.lines {
        assert!(line.priorities.is_sorted_by(|a, b| a >= b), "{:?}", line.priorities);
    }
    let priced_out: Vec<_> = outcome.lines.iter().map(|line| line.priced_out).collect();
    assert_eq!(priced_out, [0, 0, 8, 0]);
    let basefees: Vec<_> = outcome.lines.iter().map(|line| line.basefee.as_str()).collect();
    assert_eq!(basefees, ["7", "8", "9", "8"]);
    // The lane's price has reached early's cap by then, so no tip is left.
    for (account, tip) in outcome.accounts.iter().zip([0, 50, 500]) {
        assert_eq!(account.tip, tip * account.cycles);
        assert!(account.burned_lane > 0);
    }
}

/// The first timer first; the price that a timer offers does not matter.
#[test]
fn fifo_goes_by_insertion() {
    let outcome = check("fifo", ["eeeeeeeess", "ssssssssss", "sssssssskk", "kk"], false);
    assert_eq!(outcome.fired, outcome.scheduled);
    for account in outcome.accounts {
        assert_eq!((account.tip, account.burned_lane), (0, 0));
        assert!(account.burned_cycle > 0);
    }
}

/// The best bids first, but no actor exceeds its slice before all had theirs: a third each for
/// three actors, then a half each for two.
#[test]
fn the_auction_goes_by_bid_within_slices() {
    let fired = ["kkkssseeek", "ssssseeeee", "ssssssssss", "ss"];
    let outcome = check("gba-auction", fired, true);
    for (account, (_, _, tip)) in outcome.accounts.iter().zip(ACTORS) {
        assert_eq!((account.burned_lane, account.tip), (0, u128::from(tip) * account.cycles));
    }
}

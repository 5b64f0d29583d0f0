//! Payers of timers on a real chain: a called actor spends only what its caller allowed.

use crate::{
    support::{Home, list},
    timers::{number, text},
};
use serde_json::Value;
use std::fs;

/// Schedules a number of timers at its caller's expense, at the highest price, and fails in each.
const THIEF: &str = r#"
def take(ctx, payload):
    for n in range(int(payload)):
        pvm_host.schedule_timer(
            ctx.height + 30, str(n), fee_payer = ctx.sender, gas_limit = 50000,
            max_fee_per_cycle = 1000000, max_priority_fee_per_cycle = 900000)

def handle_timer(ctx, payload):
    fail("and it costs")
"#;

fn balance(home: &Home, account: &str) -> u128 {
    text(&home.json(&["account", "balance", account])["balance"]).parse().unwrap()
}

fn amount(value: &Value) -> u128 {
    text(value).parse().unwrap()
}

#[test]
fn a_called_actor_takes_no_more_than_its_caller_allows() {
    let home = Home::new();
    home.up(&["--runners", "0", "--wait", "2"]);
    let source = home.path("thief.star");
    fs::write(&source, THIEF).unwrap();
    let deployed = home.json(&["actor", "deploy", &source.to_string_lossy()]);
    let thief = text(&deployed["actor"]).to_owned();
    let call = |timers: &'static str| ["actor", "call", &thief, "take", timers, "--from", "dev-1"];

    // The dry run names the payer and the amount; the call itself is refused.
    let tried = home.json(&[&call("3")[..], &["--dry-run"]].concat());
    let payer = text(&home.json(&["account", "balance", "dev-1"])["address"]).to_owned();
    let timers: Vec<_> =
        list(&tried["events"]).iter().filter(|event| event["kind"] == "TimerScheduled").collect();
    assert_eq!(timers.len(), 3, "{tried}");
    assert!(timers.iter().all(|timer| text(&timer["data"]["fee_payer"]) == payer), "{tried}");
    let most: u128 = timers.iter().map(|timer| amount(&timer["data"]["max_cost"])).sum();
    assert!(most > 100_000_000_000, "more than a hundred CBY: {most}");
    let refused = home.fails(6, &call("3"));
    assert!(refused.contains("PayerNotWilling"), "{refused}");
    assert!(refused.contains("--timer-allowance"), "{refused}");
    assert!(list(&home.json(&["timer", "ls", "--payer", &payer])).is_empty());

    // With an allowance it spends at most that much, and the payer cancels a timer.
    let before = balance(&home, "dev-1");
    let allowed = most + most / 10;
    let allowance = format!("{allowed}wei");
    let executed = home.json(&[&call("3")[..], &["--timer-allowance", &allowance]].concat());
    assert_eq!(executed["status"], "success", "{executed}");
    let waiting = home.json(&["timer", "ls", "--payer", "dev-1"]);
    assert_eq!(list(&waiting).len(), 3, "{waiting}");
    assert!(list(&home.json(&["timer", "ls", "--payer", "dev-2"])).is_empty());
    let id = text(&waiting[0]["timer_id"]);
    let shown = home.json(&["timer", "show", id]);
    assert_eq!(text(&shown["fee_payer"]), payer, "{shown}");
    assert!(home.fails(6, &["timer", "cancel", id, "--from", "dev-2"]).contains("Unauthorized"));
    home.json(&["timer", "cancel", id, "--from", "dev-1"]);
    home.wait_height(number(&shown["height"]) + 2);
    let fired = home.json(&["timer", "ls", "--payer", "dev-1", "--status", "failed"]);
    assert_eq!(list(&fired).len(), 2, "{fired}");
    let lost = before - balance(&home, "dev-1");
    assert!(lost > 0 && lost < allowed, "{lost} of {allowed}");
}

//! The example of the auction of agents on a devnet: agents are asked, bid, and their timers fire.

use crate::{
    shape,
    support::{Home, list},
    timers::{number, text},
};
use serde_json::{Value, json};

const TOPOLOGY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/topologies/congestion-gba-auction.yaml");
const SPAMMER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/actors/spammer.star");

fn spammer(home: &Home) -> String {
    let deployed = home.json(&["actor", "deploy", SPAMMER]);
    let actor = text(&deployed["actor"]).to_owned();
    home.json(&["account", "fund", &actor, "1000cby"]);
    actor
}

/// Makes an actor schedule timers for which it bids itself; returns the height at which they fire.
fn fill(home: &Home, actor: &str, timers: u64, tip: u64) -> u64 {
    let terms = json!({"timers": timers, "tip": tip, "in": 40, "max_fee": 100_000, "agent": true});
    let called = home.json(&["actor", "call", actor, "fill", &terms.to_string()]);
    number(&called["actor"]["result"])
}

#[test]
fn the_example_of_the_auction_fires_through_agents() {
    let home = Home::new();
    let up = ["devnet", "up", "--detach", "--runners", "0", "--wait", "2", "-f", TOPOLOGY];
    home.json(&up);
    let (busy, modest) = (spammer(&home), spammer(&home));

    // Without an agent, neither a user nor an actor schedules a timer.
    let refused = home.fails(6, &["timer", "schedule", &busy, "--in", "5", "--payload", "1"]);
    assert!(refused.contains("GbaRequired") && refused.contains("--gba"), "{refused}");
    let refused = home.fails(6, &["actor", "call", &busy, "fill", r#"{"timers": 1}"#]);
    assert!(refused.contains("GbaRequired"), "{refused}");
    let poor = home.json(&["actor", "deploy", SPAMMER]);
    let args = ["--in", "900", "--payload", "1", "--gba", &busy, "--tier", "fast"];
    let warned =
        home.run(&[&["-q", "timer", "schedule", text(&poor["actor"])], &args[..]].concat());
    assert_eq!(warned.code, 0, "{warned:?}");
    assert!(warned.stderr.contains("waits for funds"), "{warned:?}");
    assert!(warned.stderr.contains("--tier has no effect"), "{warned:?}");

    let due = fill(&home, &busy, 300, 5);
    let later = fill(&home, &modest, 20, 1);
    let quote = home.json(&["timer", "bid", "latest"]);
    assert_eq!((text(&quote["gba"]), &quote["success"]), (modest.as_str(), &true.into()));
    assert_eq!((text(&quote["effective_tip"]), &quote["rank"]), ("1", &1.into()), "{quote}");
    assert!(text(&quote["not_asked"]).contains("not due"), "{quote}");
    let bid = home.json(&[
        "actor",
        "call",
        &busy,
        "getGasBid",
        r#"{"current_block_height": 9}"#,
        "--dry-run",
    ]);
    assert_eq!(bid["result"]["max_priority_fee_per_cycle"], 5, "{bid}");
    // A transaction cannot call it, and the command refuses before it sends one.
    let refused = home.fails(6, &["actor", "call", &busy, "getGasBid"]);
    assert!(refused.contains("nothing was sent"), "{refused}");

    home.wait_height(later.max(due) + 1);
    let queue = home.json(&["timer", "queue", "--limit", "3"]);
    let waiting = list(&queue["due"]["timers"]);
    assert_eq!(waiting.len(), 3, "{queue}");
    let ranks: Vec<_> = waiting.iter().map(|timer| number(&timer["rank"])).collect();
    assert_eq!(ranks, [1, 2, 3]);
    for timer in waiting {
        assert_eq!((&timer["agent"], &timer["reason"]), (&"asked".into(), &"lane_full".into()));
        assert_eq!(timer["weight_per_mille"], 1_000);
        assert!(["1", "5"].contains(&text(&timer["effective_tip"])), "{timer}");
    }
    assert_eq!(queue["due"]["next"], 3);
    let table = home.run(&["timer", "queue", "--limit", "3", "--offset", "3"]);
    assert!(table.stdout.contains("lane full") && table.stdout.contains("--offset 6"), "{table:?}");

    let block = home.json(&["chain", "block", &(later.max(due) + 1).to_string()]);
    let fires = list(&block["fires"]);
    let of = |actor: &str| fires.iter().filter(|fire| text(&fire["actor"]) == actor).count();
    assert!(of(&busy) >= 4 && of(&modest) >= 4, "{fires:?}");
    let first = fires.iter().find(|fire| text(&fire["actor"]) == busy).unwrap();
    assert_eq!(text(&first["priority_per_cycle"]), "5");
    let asked = list(&block["events"]).iter().find(|event| event["kind"] == "AgentsAsked").unwrap();
    assert!(number(&asked["data"]["timers"]) >= 1, "{asked}");
    assert!(number(&asked["data"]["cycles"]) >= 1_000 && asked["data"]["paid"] != "0", "{asked}");
    let shown = home.json(&["timer", "show", text(&first["timer_id"])]);
    assert_eq!(text(&shown["bid"]["max_priority_fee_per_cycle"]), "5");
    assert_eq!((text(&shown["gba"]), &shown["bid"]["failed"]), (busy.as_str(), &false.into()));
    let said = home.run(&["timer", "show", text(&first["timer_id"])]).stdout;
    assert!(!said.contains("not asked") && !said.contains("never asked"), "{said}");

    let fairness = home.json(&["timer", "fairness"]);
    let recent = |actor: &str| -> u64 {
        let members = list(&fairness["members"]);
        let found = members.iter().find(|member| text(&member["account"]) == actor);
        found.map_or(0, |member| number(&member["recent"]))
    };
    assert!(recent(&busy) > 0 && recent(&modest) > 0, "{fairness}");
    let lanes = home.json(&["timer", "fees", "--limit", "100"]);
    let sum = |key: &str| list(&lanes).iter().map(|lane| number(&lane[key])).sum::<u64>();
    assert!(sum("asked") > 0 && sum("fired") > 0);
    assert!(list(&lanes).iter().all(|lane| text(&lane["lane_basefee"]) != "0"), "{lanes}");

    let burned = home.json(&["chain", "burned"]);
    let part = |key: &str| text(&burned[key]).parse::<u128>().unwrap();
    let parts = ["transactions", "timers", "questions", "callbacks", "penalties"].map(part);
    assert_eq!(parts.iter().sum::<u128>(), part("total"));
    assert!(parts[..3].iter().all(|part| *part > 0), "{burned}");
    assert!(matches!(burned["height"], Value::Number(_)));
    shape::seen(&["chain burned", "timer bid", "timer queue"]);
}

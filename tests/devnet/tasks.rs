//! Tasks between accounts: their permissions and deadlines, and books that agree to the wei.

use crate::{
    shape,
    speculation::wei,
    support::{Home, list},
    timers::{number, text},
};
use cowboy_devnet::client::{BlockAt, Client};
use cowboy_engine::primitives::Address;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn task(home: &Home, from: &str, args: &[&str]) -> Value {
    home.json(&[&["task"], args, &["--from", from]].concat())
}

fn refused(home: &Home, from: &str, args: &[&str]) -> String {
    let outcome = home.run(&[&["task"], args, &["--from", from]].concat());
    assert_eq!(outcome.code, 6, "{outcome:?}");
    outcome.stderr
}

fn balance(home: &Home, account: &str) -> u128 {
    wei(&home.json(&["account", "balance", account])["balance"])
}

/// The fees that accounts have paid in all blocks, by address.
fn fees(home: &Home) -> BTreeMap<Address, u128> {
    let client = Client::of_devnet(&home.devnet("local")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut fees = BTreeMap::new();
        for height in 1..=client.head().await.unwrap().height {
            for one in client.block(BlockAt::Height(height)).await.unwrap().transactions {
                let shown = client.transaction(&one.hash.to_string()).await.unwrap();
                let fee = shown.fee.map_or(0, |fee| fee.burned.get() + fee.tip.get());
                *fees.entry(*one.sender).or_default() += fee;
            }
        }
        fees
    })
}

/// An account's rewards and bonds from events: paid for tasks, locked, released, slashed.
fn books(events: &Value, address: &str) -> (u128, u128, u128, u128) {
    let (mut paid, mut locked, mut released, mut slashed) = (0, 0, 0, 0);
    for event in list(events).iter().filter(|event| event["data"]["agent"] == address) {
        let data = &event["data"];
        match text(&event["kind"]) {
            "TaskCompleted" => paid += wei(&data["paid"]),
            "CommitmentCreated" => locked += wei(&data["bond"]),
            "CommitmentResolved" => {
                released += wei(&data["released"]);
                slashed += wei(&data["slashed"]);
            }
            _ => {}
        }
    }
    (paid, locked, released, slashed)
}

#[test]
fn a_second_account_claims_and_completes_and_all_money_agrees() {
    let home = Home::new();
    home.up(&["--runners", "0", "--wait", "2"]);
    let accounts = ["dev-1", "dev-2", "dev-3"];
    let before = accounts.map(|account| balance(&home, account));
    // A proof may take long on a machine with other work.
    let long = ["--deadline", "+20000"];
    let create = ["create", "--reward", "5cby", "--expect", "42", "--requires", "gpu,eu"];
    let created = task(&home, "dev-1", &[&create[..], &long].concat());
    let id = text(&created["task_id"]).to_owned();
    assert_eq!(
        (&created["status"], &created["requirements"]),
        (&json!("open"), &json!(["gpu", "eu"]))
    );
    let events = home.json(&["chain", "events", "--from", "0", "--kind", "TaskCreated"]);
    let data = &events[0]["data"];
    for field in ["task_id", "reward", "deadline", "constraint_hash", "requirements", "depends_on"]
    {
        assert_eq!(data[field], created[field], "{field}: {data}");
    }
    // Its child reads its output.
    let child = ["create", "--reward", "1cby", "--depends-on", &id];
    let child = task(&home, "dev-1", &[&child[..], &long].concat());
    let child = text(&child["task_id"]).to_owned();

    // The first agent commits and lets its claim expire.
    let claimed = task(&home, "dev-3", &["claim", &id, "--until", "+50"]);
    let past = number(&claimed["claim"]["expires_at"]) + 1;
    let taken = refused(&home, "dev-2", &["claim", &id]);
    assert!(taken.contains("AlreadyClaimed"), "{taken}");
    let early = refused(&home, "dev-2", &["commit", &id, "42"]);
    assert!(early.contains("NotClaimant"), "{early}");
    let poor = refused(&home, "dev-3", &["commit", &id, "42", "--bond", "1"]);
    assert!(poor.contains("BondTooLow"), "{poor}");
    let committed = task(&home, "dev-3", &["commit", &id, "42", "--bond", "60cby"]);
    assert_eq!(committed["commitment"]["bond"], "60000000000");
    home.json(&["chain", "wait", &past.to_string()]);
    let late = refused(&home, "dev-3", &["complete", &id, "42"]);
    assert!(late.contains("ClaimPast"), "{late}");

    // The second agent takes over the task and its child.
    task(&home, "dev-2", &["claim", &id, "--until", "+10000"]);
    task(&home, "dev-2", &["commit", &id, "42"]);
    let other = refused(&home, "dev-2", &["complete", &id, "43"]);
    assert!(other.contains("does not match the commitment"), "{other}");
    task(&home, "dev-2", &["claim", &child, "--until", "+10000"]);
    task(&home, "dev-2", &["commit", &child, "43"]);
    let first = refused(&home, "dev-2", &["complete", &child, "43"]);
    assert!(first.contains("ParentNotCompleted"), "{first}");
    let listed = |args: &[&str]| -> Vec<String> {
        let all = home.json(&[&["task", "ls"], args].concat());
        list(&all).iter().map(|task| text(&task["task_id"]).to_owned()).collect()
    };
    let shown = home.json(&["task", "show", &id]);
    let output = text(&shown["commitment"]["output_commitment"]).to_owned();
    assert_eq!(listed(&["--commitment", &output]), [id.as_str()]);
    let done = task(&home, "dev-2", &["complete", &id, "42"]);
    assert_eq!(done["status"], "completed");
    task(&home, "dev-2", &["complete", &child, "43"]);
    for task_id in [&id, &child] {
        let resolved = task(&home, "dev-1", &["resolve", task_id]);
        assert!(resolved["commitment"].is_null(), "{resolved}");
    }

    assert_eq!(
        listed(&["--status", "completed", "--agent", "dev-2"]),
        [child.as_str(), id.as_str()]
    );
    assert_eq!(listed(&["--agent", "dev-3"]), [""; 0]);
    assert_eq!(listed(&["--depth", "1", "--creator", "dev-1"]), [child.as_str()]);
    assert_eq!(listed(&["--requires", "gpu", "--committed=false"]), [id.as_str()]);
    assert_eq!(listed(&["--committed"]), [""; 0]);
    assert_eq!(listed(&["--commitment", &output, "--committed=false"]), [id.as_str()]);
    let nonsense = home.fails(2, &["task", "ls", "--commitment", "42"]);
    assert!(nonsense.contains("output commitment"), "{nonsense}");
    assert_eq!(listed(&["--deadline-by", "1"]), [""; 0]);

    let after = accounts.map(|account| balance(&home, account));
    let (rewards, fees) = (6_000_000_000, fees(&home));
    let events = home.json(&["chain", "events", "--from", "0"]);
    for (at, account) in accounts.iter().enumerate() {
        let shown = home.json(&["account", "balance", account]);
        let address = text(&shown["address"]);
        let (paid, locked, released, slashed) = books(&events, address);
        let fees = fees[&address.parse::<Address>().unwrap()];
        assert_eq!(locked, released + slashed, "{account}");
        let put_up = if at == 0 { rewards } else { 0 };
        assert_eq!(after[at], before[at] + paid + released - locked - put_up - fees, "{account}");
        assert_eq!(paid, if at == 1 { rewards } else { 0 }, "{account}");
        assert_eq!(slashed > 0, at == 2, "{account}");
    }
    let shown = home.run(&["task", "show", &child]);
    assert!(shown.code == 0 && shown.stdout.contains("completed"), "{shown:?}");
    assert_eq!(home.json(&["task", "show", "latest"])["task_id"], child.as_str());
    let supply = &home.json(&["devnet", "status"])["supply"];
    assert_eq!((&supply["bonds"], &supply["escrow"]), (&json!("0"), &json!("0")), "{supply}");
    shape::seen(&[
        "task create",
        "task claim",
        "task commit",
        "task complete",
        "task resolve",
        "task ls",
        "task show",
    ]);
}

#[test]
fn a_commitment_has_a_time_of_its_own() {
    let home = Home::new();
    home.up(&["--runners", "0", "--wait", "2"]);
    let create = ["create", "--reward", "1cby", "--deadline", "+20000"];
    let id = text(&task(&home, "dev-1", &create)["task_id"]).to_owned();
    task(&home, "dev-2", &["claim", &id, "--until", "+10000"]);
    let beyond = refused(&home, "dev-2", &["commit", &id, "x", "--until", "+15000"]);
    assert!(beyond.contains("CommitmentOutOfRange"), "{beyond}");
    let committed = task(&home, "dev-2", &["commit", &id, "x", "--until", "+60"]);
    let past = number(&committed["commitment"]["expires_at"]) + 1;
    let counts = refused(&home, "dev-1", &["resolve", &id, "commitment_expired"]);
    assert!(counts.contains("CommitmentCounts"), "{counts}");
    home.json(&["chain", "wait", &past.to_string()]);
    let past = refused(&home, "dev-2", &["complete", &id, "x"]);
    assert!(past.contains("CommitmentPast"), "{past}");
    let ended = task(&home, "dev-1", &["resolve", &id, "commitment_expired"]);
    assert_eq!((&ended["status"], &ended["commitment"]), (&json!("open"), &Value::Null));
    let events = home.json(&["chain", "events", "--from", "0", "--kind", "CommitmentResolved"]);
    assert_eq!(events[0]["data"]["reason"], "commitment_expired", "{events}");
    let gone = home.fails(3, &["task", "show", &format!("0x{}", "9".repeat(64))]);
    assert!(gone.contains("there is no task"), "{gone}");
}

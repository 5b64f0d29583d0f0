//! Runs that are submitted by timers of a real chain: one for each fire, despite SIGKILLs.

use crate::{
    shape,
    support::{Home, list, wait_until},
    timers::{HEARTBEAT, number, text},
};
use serde_json::Value;
use std::{collections::BTreeMap, fs};

/// The blocks and timers of an actor's successful fires after `after` and up to `to`.
fn fires(home: &Home, actor: &str, after: u64, to: u64) -> Vec<(u64, String)> {
    let from = (after + 1).to_string();
    let events = home.json(&["chain", "events", "--from", &from, "--kind", "TimerFired"]);
    let counts = |event: &&Value| {
        let data = &event["data"];
        data["actor"] == actor && data["success"] == true && number(&event["height"]) <= to
    };
    let fires = list(&events).iter().filter(counts);
    fires.map(|event| (number(&event["height"]), text(&event["data"]["timer_id"]).into())).collect()
}

/// The blocks and timers of the runs that a schedule has made.
fn made(home: &Home, schedule: &str) -> Vec<(u64, String)> {
    let runs = home.json(&["lease", "ls", "--runs", "--limit", "10000"]);
    let by = list(&runs).iter().rev().map(|run| &run["by_schedule"]);
    let by = by.filter(|by| by["schedule"] == schedule);
    by.map(|by| (number(&by["height"]), text(&by["timer_id"]).to_owned())).collect()
}

#[test]
fn each_fire_makes_one_run_over_kills() {
    let home = Home::new();
    home.up(&["--wait", "2", "--runners", "0"]);
    let deployed = home.json(&["actor", "deploy", HEARTBEAT]);
    let actor = text(&deployed["actor"]);
    home.json(&["account", "fund", actor, "10cby"]);
    let file = home.path("beat.yaml");
    let run = "name: beat\njobs:\n  beat: {env: {KEY: {secret: hunter2}}, steps: [echo $KEY]}\n  \
               other: {steps: ['true']}\n";
    fs::write(&file, run).unwrap();
    let file = file.to_str().unwrap();
    let add = ["lease", "schedule", "add", file, "--actor"];

    // A schedule that cannot fire is refused with the reason.
    let none = home.fails(3, &[&add[..], &[&format!("0x{}", "12".repeat(20))]].concat());
    assert!(none.contains("there is no actor") && none.contains("actor deploy"), "{none}");
    let none = home.fails(3, &[&add[..], &[actor, "--handler", "handle_evry"]].concat());
    assert!(none.contains("has no handler") && none.contains("`handle_every`"), "{none}");
    home.fails(2, &["lease", "schedule", "add", file]);

    let only = ["--handler", "handle_every", "--job", "beat", "--env", "MORE=1"];
    let made_at = home.json(&[&add[..], &[&actor[..12]], &only].concat());
    assert_eq!((&made_at["actor"], &made_at["jobs"]), (&actor.into(), &1.into()), "{made_at}");
    let (schedule, since) = (text(&made_at["schedule"]), number(&made_at["since"]));
    let quiet = home.run(&[&["-q"], &add[..], &[actor, "--handler", "beats"]].concat());
    let idle = quiet.stdout.trim();
    assert!(quiet.code == 0 && idle.starts_with("sched_"), "{quiet:?}");

    home.json(&["timer", "schedule", actor, "--every", "3"]);
    wait_until("three runs are made", || made(&home, schedule).len() >= 3);
    for _ in 0..3 {
        let before = made(&home, schedule).len();
        home.kill("local");
        home.json(&["devnet", "up", "--detach"]);
        wait_until("runs are made again", || made(&home, schedule).len() >= before + 2);
    }

    // Fires end when the actor stops, and each has its run.
    home.json(&["actor", "call", actor, "stop", "--cycles", "50000", "--cells", "500"]);
    let head = home.height();
    let expected = fires(&home, actor, since, head);
    assert!(expected.len() >= 9, "{expected:?}");
    wait_until("the last fires have runs", || made(&home, schedule).len() >= expected.len());
    home.wait_height(head + 4);
    assert_eq!(made(&home, schedule), expected);
    let mut heights = BTreeMap::<u64, u32>::new();
    for (height, _) in &expected {
        *heights.entry(*height).or_default() += 1;
    }
    assert!(heights.values().all(|times| *times == 1), "{expected:?}");

    let schedules = home.json(&["lease", "schedule", "ls"]);
    let of = |id: &str| list(&schedules).iter().find(|one| one["schedule"] == id).unwrap().clone();
    let shown = of(schedule);
    assert_eq!((number(&shown["runs"]), number(&shown["skipped"])), (expected.len() as u64, 0));
    let (height, timer) = expected.last().unwrap();
    let last = &shown["last_run"];
    assert_eq!((&last["height"], &last["timer_id"]), (&(*height).into(), &timer.as_str().into()));
    assert_eq!(of(idle)["runs"], 0, "its handler is not called by timers");
    let run = home.run(&["lease", "show", text(&last["run_id"])]);
    assert!(
        run.stdout.contains(&format!("{schedule}, timer {timer} in block {height}")),
        "{run:?}"
    );
    let job = home.json(&["lease", "show", "latest/beat"]);
    assert_eq!(job["spec"]["env"]["KEY"]["secret"], "***", "{job}");
    assert_eq!(job["spec"]["env"]["MORE"], "1");
    let table = home.run(&["lease", "ls", "--runs"]);
    assert!(table.stdout.contains(&format!("beat, by {schedule}")), "{table:?}");

    // A removed schedule makes no further runs.
    home.json(&["timer", "schedule", actor, "--every", "1"]);
    wait_until("the heart beats again", || made(&home, schedule).len() > expected.len());
    home.json(&["lease", "schedule", "rm", &schedule[..14]]);
    let after = made(&home, schedule).len();
    let head = home.height();
    wait_until("it goes on", || !fires(&home, actor, head, head + 1_000).is_empty());
    assert_eq!(made(&home, schedule).len(), after);
    let gone = home.fails(3, &["lease", "schedule", "rm", schedule]);
    assert!(gone.contains("there is no such schedule"), "{gone}");
    shape::seen(&["lease schedule add", "lease schedule ls", "lease schedule rm"]);
    home.json(&["devnet", "down"]);
}

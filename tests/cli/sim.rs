//! Scenarios through the command line: run, reported, and replayed by another process.

use crate::{shape, support::Folder};
use serde_json::Value;
use std::fs;

/// Small enough to be played several times.
const SMALL: &str = "about: a test\nblocks: 12\nrunners: 2\nload: {transfers: 1, jobs: 1}\n\
                     faults: [{at: 4..6, for: 2..3, kill: any-runner}]\n";

/// Two of four validators cannot decide.
const STUCK: &str = "blocks: 30\nrunners: 0\npatience: 5s\n\
                     faults: [{at: 6, partition: [[validator-0, validator-1]]}]\n";

fn folder() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("small.yaml"), SMALL).unwrap();
    fs::write(folder.path("stuck.yaml"), STUCK).unwrap();
    folder
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn scenarios_are_listed_and_shown() {
    let folder = folder();
    let names = folder.prints(&["sim", "ls", "-q"]);
    assert!(names.lines().any(|name| name == "halves"), "{names}");
    let listed = json(&folder.prints(&["sim", "ls", "-o", "json"]));
    shape::seen(&["sim ls"]);
    assert_eq!(listed.as_array().unwrap().len(), names.lines().count());
    let shown = folder.prints(&["sim", "show", "halves"]);
    fs::write(folder.path("mine.yaml"), &shown).unwrap();
    assert!(shown.contains("partition:"), "{shown}");
    insta::assert_snapshot!(folder.fails(3, &["sim", "run", "halfes"]), @r"
    error: there is no scenario and no file `halfes`
      did you mean halves? see all: cowboyctl sim ls
    ");
    fs::write(folder.path("bad.yaml"), "blocks: 10\nfaults:\n- {at: 3, kill: me}\n").unwrap();
    let refused = folder.fails(2, &["sim", "run", "bad.yaml"]);
    assert!(refused.starts_with("error: bad.yaml:3: "), "{refused}");
    assert!(refused.contains("expected validator-N, runner-N"), "{refused}");
    assert_eq!(folder.run(&["sim", "run", "calm", "--seeds", "9..1"]).code, 2);
}

#[test]
fn a_seed_has_one_digest_in_every_process() {
    let folder = folder();
    let digest = |seed: &str| folder.prints(&["sim", "run", "small.yaml", "--seed", seed, "-q"]);
    let first = digest("7");
    assert!(first.starts_with("0x") && first.trim().len() == 66, "{first}");
    assert_eq!(digest("7"), first);
    assert_ne!(digest("8"), first);
    let told = json(&folder.prints(&["sim", "run", "small.yaml", "--seed", "7", "-o", "json"]));
    assert_eq!(told["digest"], first.trim());
    assert_eq!((&told["ok"], &told["violation"]), (&true.into(), &Value::Null));
    assert!(told["heights"]["lowest"].as_u64().unwrap() >= 12, "{told}");
    assert!(told["state_root"].as_str().unwrap().starts_with("0x"), "{told}");
}

#[test]
fn seeds_are_told_in_their_order() {
    let folder = folder();
    let run = ["sim", "run", "small.yaml", "--seeds", "1..5", "--parallel", "2", "-o", "jsonl"];
    let lines: Vec<_> = folder.prints(&run).lines().map(json).collect();
    let seeds: Vec<_> = lines.iter().map(|line| line["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [1, 2, 3, 4, 5]);
    // A seed gives the same run alone and among others.
    let alone = folder.prints(&["sim", "run", "small.yaml", "--seed", "3", "-q"]);
    assert_eq!(lines[2]["digest"], alone.trim());
}

#[test]
fn a_violation_is_told_with_its_replay() {
    let folder = folder();
    let run = folder.run(&["sim", "run", "stuck.yaml", "--seed", "3", "-o", "json"]);
    assert_eq!(run.code, 7, "{run:?}");
    let told = json(&run.stdout);
    assert_eq!(told["ok"], false);
    assert_eq!(told["violation"]["invariant"], "liveness");
    let replay = "cowboyctl sim replay stuck.yaml --seed 3";
    assert_eq!(told["violation"]["replay"], replay);
    assert!(run.stderr.contains(replay), "{run:?}");
    assert!(run.stderr.lines().count() <= 3, "{run:?}");
    let replayed = folder.run(&["sim", "replay", "stuck.yaml", "--seed", "3", "-o", "jsonl"]);
    assert_eq!((replayed.code, &replayed.stderr), (7, &run.stderr));
    let steps: Vec<_> = replayed.stdout.lines().map(json).collect();
    assert!(steps.iter().any(|step| step["kind"] == "fault"), "{steps:?}");
    let last = steps.iter().rfind(|step| step["kind"] == "block").unwrap();
    assert_eq!(last["height"], told["violation"]["height"]);
    let many = folder.run(&["sim", "run", "stuck.yaml", "--seeds", "1..2", "-q"]);
    assert_eq!((many.code, many.stdout.as_str()), (7, "1 violated\n2 violated\n"));
    assert!(many.stderr.contains("2 of 2 seeds violate an invariant"), "{many:?}");
    shape::seen(&["sim run", "sim replay"]);
}

#[test]
fn a_replay_ends_where_it_is_told() {
    let folder = folder();
    let steps = folder.run(&["sim", "replay", "small.yaml", "--until", "5", "-o", "json"]);
    assert_eq!(steps.code, 0, "{steps:?}");
    let Value::Array(steps) = json(&steps.stdout) else { panic!("no list") };
    let heights: Vec<_> = steps.iter().filter_map(|step| step["height"].as_u64()).collect();
    assert!(heights.contains(&5) && heights.iter().all(|height| *height <= 8), "{heights:?}");
}

//! Scenarios through the command line: run, reported, and replayed by another process.

use crate::{shape, support::Folder};
use serde_json::Value;
use std::fs;

/// Small enough to be played several times.
const SMALL: &str = "about: a test\nblocks: 12\nrunners: 2\nload: {transfers: 1, jobs: 1}\n\
                     faults: [{at: 4..6, for: 2..3, kill: any-runner}]\n";

/// Long enough for jobs, which are submitted until the last forty blocks.
const LONGER: &str = "blocks: 50\nrunners: 2\nload: {transfers: 1, jobs: 1}\n\
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
fn a_scenario_has_checks_of_its_own() {
    let folder = folder();
    let run = |checks: &str| {
        fs::write(folder.path("checks.yaml"), format!("{LONGER}checks: {checks}\n")).unwrap();
        folder.run(&["sim", "run", "checks.yaml", "--seed", "3", "-o", "json"])
    };
    let holds = run("['.jobs.verified > 0', '.events.JobVerified == .jobs.verified']");
    assert_eq!(holds.code, 0, "{holds:?}");
    let told = json(&holds.stdout);
    assert!(told["events"]["Transferred"].as_u64().unwrap() > 5, "{told}");
    for (check, why) in [
        (".jobs.verified > 100", "`.jobs.verified > 100` is not true of the outcome"),
        (".jobs + 1", ".jobs + 1: cannot"),
    ] {
        let run = run(&format!("['.ok', '{check}']"));
        assert_eq!(run.code, 7, "{run:?}");
        let told = json(&run.stdout);
        assert_eq!(
            (&told["ok"], &told["violation"]["invariant"]),
            (&false.into(), &"checks".into())
        );
        assert!(told["violation"]["what"].as_str().unwrap().contains(why), "{told}");
    }
    let run = run("[.jobs, '.jobs >']");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("checks.yaml: checks[1]: .jobs >: expected term"), "{run:?}");
}

#[test]
fn a_run_is_told_as_a_page() {
    let folder = folder();
    let story = |name: &str| {
        let page = fs::read_to_string(folder.path(name)).unwrap();
        let (_, data) = page.split_once("id=\"story\">").unwrap();
        json(data.split_once("</script>").unwrap().0)
    };
    let checked = format!("{LONGER}checks: ['.jobs.verified > 0']\n");
    fs::write(folder.path("longer.yaml"), checked).unwrap();
    folder.prints(&["sim", "run", "longer.yaml", "--seed", "3", "--html", "small.html"]);
    let told = story("small.html");
    assert_eq!(told["verdict"]["passed"], true, "{told}");
    // The invariants are before it.
    let check = told["checks"].as_array().unwrap().last().unwrap();
    assert_eq!((&check["name"], &check["passed"]), (&".jobs.verified > 0".into(), &true.into()));
    let blocks = told["blocks"].as_array().unwrap();
    assert!(blocks.len() >= 50, "{told}");
    let whole = |block: &Value| {
        block["present"].as_array().is_some_and(|present| present.len() == 2)
            && block["voters"].as_array().is_some_and(|voters| voters.len() == 3)
            && block["proposer"].is_u64()
    };
    assert!(blocks.iter().any(whole), "{told}");
    // No vote sees a runner that could not, and all that could see one at some time.
    let counts = |block: &Value| {
        let (seen, could) = (block["certified_present"].clone(), block["certified_could"].clone());
        let of = |counts: &Value, runner: &str| counts[runner].as_u64().unwrap_or(0);
        ["0", "1"].map(|runner| (of(&seen, runner), of(&could, runner)))
    };
    let told_votes = blocks.iter().filter(|block| block["voters"].is_array()).flat_map(counts);
    let told_votes: Vec<_> = told_votes.collect();
    assert!(told_votes.iter().all(|(seen, could)| seen <= could), "{told_votes:?}");
    assert!(told_votes.iter().any(|(seen, could)| seen == could && *could > 0), "{told_votes:?}");
    let fault = &told["faults"][0];
    assert_eq!((&fault["kind"], told["faults"].as_array().unwrap().len()), (&"kill".into(), 1));
    assert!(fault["to"].as_u64().unwrap() > fault["from"].as_u64().unwrap(), "{fault}");
    let verified =
        told["jobs"].as_array().unwrap().iter().filter(|job| job["status"] == "verified");
    assert!(verified.count() > 5, "{told}");
    // What does not hold is in the page, and another run replaces it.
    let run = folder.run(&["sim", "run", "stuck.yaml", "--seed", "3", "--html", "small.html"]);
    assert_eq!(run.code, 7, "{run:?}");
    let told = story("small.html");
    assert_eq!(told["verdict"]["passed"], false, "{told}");
    assert_eq!(told["checks"][0]["name"], "liveness", "{told}");
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

//! The draw of runners: their presence, and the sources of seeds.

use crate::{
    shape,
    support::{Home, list, wait_until},
    timers::{number, text},
};
use serde_json::Value;
use std::collections::BTreeSet;

/// Each runner's standing in `runner ls`.
fn standings(home: &Home) -> Vec<String> {
    let runners = home.json(&["runner", "ls"]);
    let of = |runner: &Value| text(&runner["presence"]["standing"]).to_owned();
    list(&runners).iter().map(of).collect()
}

#[test]
fn on_a_halted_chain_no_runner_is_called_present() {
    let home = Home::new();
    home.up(&["--wait", "4", "--runners", "3"]);
    wait_until("all are present", || standings(&home) == ["present"; 3]);
    let shown = home.run(&["runner", "show", "runner-1"]);
    assert!(shown.stdout.contains("yes: by P("), "{shown:?}");
    for validator in ["validator-2", "validator-3"] {
        home.json(&["validator", "stop", validator]);
    }
    // P(h) is as recent as before, and connections persist: only new blocks are missing.
    wait_until("the chain has halted", || standings(&home) == ["halted"; 3]);
    for runner in list(&home.json(&["runner", "ls"])) {
        assert_eq!(runner["present"], false, "{runner}");
        assert!(number(&runner["presence"]["halted_ms"]) > 10_000, "{runner}");
    }
    let listed = home.run(&["runner", "ls"]);
    assert!(!listed.stdout.contains(" yes "), "{listed:?}");
    let shown = home.run(&["runner", "show", "runner-1"]);
    assert!(shown.stdout.contains("halted: there has been no block for"), "{shown:?}");
    home.json(&["validator", "start", "validator-2"]);
    wait_until("all are present again", || standings(&home) == ["present"; 3]);
    shape::seen(&["runner ls"]);
}

#[test]
fn draws_are_seeded_by_certificates_where_the_topology_says_so() {
    let home = Home::new();
    let file = home.path("seeds.yaml");
    std::fs::write(&file, "runners: 5\nselection: {seed: certificate}\n").unwrap();
    home.up(&["-f", file.to_str().unwrap(), "--wait", "4"]);
    let known = home.json(&["chain", "params", "get", "selection.seed"]);
    assert_eq!((text(&known["value"]), text(&known["genesis"])), ("certificate", "certificate"));
    let error = home.fails(6, &["chain", "params", "set", "selection.seed=parent"]);
    assert!(error.contains("ParameterFixed: selection.seed is certificate"), "{error}");

    let work = ["--verify", "deterministic", "--runners", "2", "--wait", "--", "echo", "hi"];
    let job = home.json(&[&["job", "submit", "custom"][..], &work].concat());
    assert_eq!(job["status"], "Verified", "{job}");
    let id = text(&job["job_id"]);
    let explained = home.json(&["job", "explain", id, "--grind"]);
    let height = number(&explained["height"]);
    let source = &explained["seed_source"];
    assert_eq!(source["rule"], "certificate");
    // The newest certificate that the parent or an earlier block embeds.
    let of = number(&source["certificate_of"]);
    let embedding = number(&home.json(&["presence", "show", &of.to_string()])["embedded_in"]);
    assert!(embedding < height, "{explained}");
    let by: BTreeSet<_> = (0..4)
        .map(|i| {
            let node = format!("validator-{i}");
            home.wait_height(height + 2);
            wait_until("the validator has it", || {
                home.run(&["--node", &node, "job", "show", id]).code == 0
            });
            home.json(&["--node", &node, "job", "explain", id])["seed"].to_string()
        })
        .collect();
    assert_eq!(by.len(), 1, "all validators drew alike");
    let grind = &explained["grind"];
    // Four sets of three of four votes, and the previous certificate.
    assert_eq!((&grind["rule"], &grind["choices"]), (&"certificate".into(), &"5".into()));
    assert_eq!(number(&grind["tries"]), 0);
    let candidates = list(&grind["candidates"]);
    assert_eq!((candidates.len(), &candidates[0]["drawn"]), (5, &"2/5".into()));
    assert!(candidates[0]["chance"].as_f64().unwrap() > 0.9, "{grind}");
    home.wait_height(height + 3);
    assert_eq!(home.json(&["job", "verify-selection", id])["valid"], true);
}

#[test]
fn hashes_of_the_parent_can_be_tried_until_another_runner_is_drawn() {
    let home = Home::new();
    home.up(&["--wait", "4", "--runners", "3"]);
    let job = home.json(&["job", "submit", "custom", "--wait", "--", "echo", "hi"]);
    let id = text(&job["job_id"]);
    let explained = home.json(&["job", "explain", id, "--grind=2000"]);
    let grind = &explained["grind"];
    assert_eq!((&grind["rule"], number(&grind["tries"])), (&"parent".into(), 2_000));
    assert_eq!(grind["choices"], Value::Null);
    assert!(grind["hashes_per_second"].as_f64().unwrap() > 0.0);
    let mut hits = 0;
    for candidate in list(&grind["candidates"]) {
        assert_eq!((&candidate["first"], &candidate["drawn"]), (&"1/3".into(), &"1/3".into()));
        assert!((candidate["expected_tries"].as_f64().unwrap() - 3.0).abs() < 1e-9, "{candidate}");
        hits += number(&candidate["hits"]);
        assert!(number(&candidate["first_hit"]) < 200, "{candidate}");
    }
    assert_eq!(hits, 2_000, "each try draws one");
    let shown = home.run(&["job", "explain", id, "--grind=10"]);
    for said in
        ["one proposer chooses  among all that it can hash", "TO DRAW", "committee (in force)"]
    {
        assert!(shown.stdout.contains(said), "{said}: {shown:?}");
    }
    for tries in ["--grind=0", "--grind=1000001"] {
        home.fails(2, &["job", "explain", id, tries]);
    }
}

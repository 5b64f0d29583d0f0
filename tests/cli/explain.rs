//! `explain`: names from the book, on a terminal.

use crate::{shape, support::Folder};
use serde_json::Value;

fn json(folder: &Folder, args: &[&str]) -> Value {
    serde_json::from_str(&folder.prints(&[&["-o", "json", "explain"], args].concat())).unwrap()
}

#[test]
fn a_field_of_a_topology_is_explained() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.prints(&["explain", "topology.chain.block_time"]), @"
    topology    topology.chain.block_time
    what it is  The pace of blocks: 0ms (as fast as consensus goes) to 60s.
    takes       a duration from 0ms to 60s, as 250ms or 1s
    default     1s
    ");
    insta::assert_snapshot!(folder.prints(&["explain", "topology.chain"]), @"
    topology    topology.chain
    what it is  Chain parameters, which all validators share.
    takes       fields

    FIELD                                   TAKES                                               DEFAULT
    topology.chain.name                     a name: 1 to 32 of a-z, 0-9 and -, the first not -  local
    topology.chain.block_time               a duration from 0ms to 60s, as 250ms or 1s          1s
    topology.chain.seed                     a whole number from 0 to 18446744073709551615       0
    topology.chain.epoch_blocks             a whole number from 8 to 4294967296                 256
    topology.chain.python                   auto, off, or the 0x-hex id of a machine            auto
    topology.chain.powers                   allowed or refused                                  allowed
    topology.chain.presence                 fields                                              -
    topology.chain.presence.threshold_rule  committee, quorum or subset                         committee
    ");
    let field = json(&folder, &["topology", "runners[].stake"]);
    assert_eq!(field["name"], "topology.runners[].stake");
    assert_eq!(field["default"], "10000cby");
    shape::seen(&["explain"]);
    let section = json(&folder, &["topology.timers"]);
    let first = &section["fields"][0];
    assert_eq!(first["name"], "topology.timers.policy");
    assert_eq!(first["takes"], "eip1559, fifo or gba-auction");
    let whole = json(&folder, &["topology"]);
    assert!(whole["fields"].as_array().unwrap().len() > 100, "{whole}");
    let option = json(&folder, &["topology.speculation.maxDepth"]);
    assert_eq!((&option["takes"], &option["default"]), (&"1 to 20".into(), &"5".into()));
    assert!(option["about"].as_str().unwrap().starts_with("The maximum number"), "{option}");
}

#[test]
fn an_event_an_error_and_an_exit_code_are_explained() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.prints(&["explain", "event", "TimerFired"]), @"
    event       TimerFired
    what it is  A timer fired.

    FIELD               IS                WHAT IT IS
    timer_id            a hash            Id of the timer.
    actor               an address        The actor that owns it.
    success             true or false     Whether its handler succeeded.
    cycles              a number          Cycles paid for.
    priority_per_cycle  an amount in wei  Priority paid to the proposer, in wei per cycle.
    ");
    insta::assert_snapshot!(folder.prints(&["explain", "error", "StaleInputs"]), @"
    error       StaleInputs
    what it is  The output was made from inputs that differ from the parents' current outputs.
    what to do  `task resolve TASK ancestor_failed`, and do its work again.
    exit code   6
    ");
    insta::assert_snapshot!(folder.prints(&["explain", "exit", "6"]), @"
    exit        6
    what it is  rejected: the chain's rules refuse it; the error's name begins the line.
    what to do  What the name says: `cowboyctl explain error NAME`.
    ");
    // The topic is optional, and so are capitals.
    assert_eq!(json(&folder, &["JobVerified"])["topic"], "event");
    assert_eq!(json(&folder, &["staleinputs"])["name"], "StaleInputs");
    assert_eq!(json(&folder, &["WRONG_RUNNER"])["exit_code"], "1");
    assert_eq!(json(&folder, &["error", "not_found"])["exit_code"], "3");
    let yaml = folder.prints(&["-o", "yaml", "explain", "error", "BadProof"]);
    assert!(yaml.contains("name: BadProof\n"), "{yaml}");
}

#[test]
fn what_there_is_is_listed() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.prints(&["explain"]), @"
    NAME      WHAT IT IS
    topology  the fields of a topology, as topology.chain.block_time
    event     what happens in blocks, as event TimerFired
    error     why the chain, the control API or a lease server refuses, as error StaleInputs
    exit      what exit codes mean, as exit 6
    ");
    for (topic, least) in [("event", 50), ("error", 120), ("exit", 11)] {
        let names = folder.prints(&["--quiet", "explain", topic]);
        assert!(names.lines().count() >= least, "{topic}: {names}");
        // Each of them is found.
        for name in names.lines().step_by(10) {
            assert_eq!(json(&folder, &[topic, name])["name"], name);
        }
    }
}

#[test]
fn what_is_not_there_is_told_with_what_was_meant() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.fails(3, &["explain", "error", "StaleInput"]), @"
    error: unknown name `StaleInput`
      did you mean `StaleInputs`?
      list the names: cowboyctl explain
    ");
    insta::assert_snapshot!(folder.fails(3, &["explain", "topology.chain.blok_time"]), @"
    error: unknown name `topology.chain.blok_time`
      did you mean `topology.chain.block_time`?
      list the names: cowboyctl explain
    ");
    insta::assert_snapshot!(folder.fails(3, &["explain", "evnt", "TimerFired"]), @"
    error: unknown name `evnt`
      did you mean `event`?
      list the names: cowboyctl explain
    ");
    insta::assert_snapshot!(folder.fails(3, &["explain", "nothing-like-that"]), @"
    error: unknown name `nothing-like-that`
      list the names: cowboyctl explain
    ");
}

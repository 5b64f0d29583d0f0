//! Valid scenarios, and the errors of invalid ones.

use cowboy_simulation::script::{Range, Script, Span, all, named};

#[test]
fn every_scenario_of_the_library_is_one() {
    for scenario in all() {
        let script = scenario.script().unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
        assert!(!script.about.is_empty(), "{}", scenario.name);
        assert_eq!(named(scenario.name), Some(scenario));
    }
    assert_eq!(named("nothing"), None);
}

#[test]
fn what_is_left_out_has_its_default() {
    assert_eq!(Script::parse("{}").unwrap(), Script::default());
    let script = Script::parse("faults: [{at: 3, for: 5..9, kill: runner-1}]").unwrap();
    let fault = &script.faults[0];
    assert_eq!(fault.at, Range { from: 3, to: 3 });
    assert_eq!(fault.lasting, Some(Span::Blocks(Range { from: 5, to: 9 })));
    assert_eq!(fault.to_string(), "kill runner-1");
}

#[test]
fn what_is_wrong_is_named() {
    let check = |yaml: &str, expected: &str| {
        let error = Script::parse(yaml).unwrap_err().to_string();
        assert!(error.contains(expected), "{yaml}: {error}");
    };
    check("validators: 17", "validators: 17 is not from 1 to 16");
    check("blocks: 0", "blocks: 0 is not from 1 to 20000");
    check("a: 1", "1: unknown field `a`");
    check("about: x\nblocks: soon", "2: blocks: invalid type");
    check("faults: [{at: 3}]", "faults[0]: expected one of kill, pause, partition");
    check("faults: [{at: 3, kill: runner-0, pause: runner-0}]", "expected one of kill");
    check(
        "faults: [{at: soon, kill: runner-0}]",
        "`soon`: expected a number of blocks, or a range",
    );
    check("faults: [{at: 9..3, kill: runner-0}]", "`9..3`: expected a number of blocks");
    check("faults: [{at: 3, kill: someone}]", "expected validator-N, runner-N, any-validator");
    check("faults: [{at: 3, kill: validator-4}]", "no validator-4: the last is validator-3");
    check("runners: 0\nfaults: [{at: 3, kill: any-runner}]", "there are no runners");
    check("faults: [{at: 3, every: 4, kill: any-runner}]", "a repeating fault has to end");
    check("faults: [{at: 3, loss: {on: validator-0, percent: 101}}]", "a percentage from 0 to 100");
    check(
        "faults: [{at: 3, loss: {on: runner-0..runner-1, percent: 1}}]",
        "no links to each other",
    );
    check("faults: [{at: 3, partition: [[runner-0], [runner-0]]}]", "runner-0 is in it twice");
    check("faults: [{at: 3, lie: {on: runner-0, votes: ones}}]", "only their votes lie");
    check("faults: [{at: 3, lie: {on: validator-0, votes: big}}]", "expected ones, zeros or flip");
    check(
        "faults: [{at: 3, lie: {on: validator-0, votes: ones, of: validator-1}}]",
        "validator-1 is not a runner",
    );
    check("faults: [{at: 3, lie: {on: validator-0, votes: ones, of: runner-4}}]", "no runner-4");
    check("liars: {runner-0: ones}", "only their votes lie");
    check("liars: {validator-0: big}", "`big` is not a lie: expected ones");
    check("block_time: 60s\nblocks: 20000", "blocks times block_time in s");
    check("faults: [{at: 3, for: 2h, kill: runner-0}]", "faults[0].for in s: 7200 is not from 0");
}

//! Played scenarios: correct ones pass, broken ones are reported, and a seed determines the run.

use cowboy_devnet::topology::PresenceRule;
use cowboy_simulation::{
    play::{Line, Played, play},
    script::{Script, all, named},
};
use std::time::Duration;

fn played(yaml: &str, seed: u64) -> (Played, Vec<Line>) {
    let script = Script::parse(yaml).expect("a scenario");
    let mut lines = Vec::new();
    let played = play(&script, seed, None, &mut |line| lines.push(line)).expect("it is played");
    (played, lines)
}

#[test]
fn a_seed_is_a_run() {
    let yaml = "runners: 3\nblocks: 30\nload: {transfers: 1, jobs: 1}\n\
                faults: [{at: 5..15, for: 3..9, kill: any-validator}]\n";
    let (first, lines) = played(yaml, 7);
    let (again, same) = played(yaml, 7);
    assert_eq!((&first, &lines), (&again, &same));
    assert_eq!(first.breach, None);
    let (other, _) = played(yaml, 8);
    assert_ne!((first.digest, &first.audit), (other.digest, &other.audit));
    let kinds = |kind| lines.iter().filter(|line| line.kind == kind).count();
    assert_eq!((kinds("fault"), kinds("heal")), (1, 1), "{lines:?}");
    assert!(kinds("block") >= 30);
}

#[test]
fn the_beginning_of_a_run_is_the_same() {
    let script = Script::parse("blocks: 30\nrunners: 2\nload: {transfers: 1}\n").unwrap();
    let run = |until| {
        let mut lines = Vec::new();
        let played = play(&script, 3, until, &mut |line| lines.push(line)).expect("it is played");
        (played.heights.1, lines)
    };
    let ((_, whole), (reached, part)) = (run(None), run(Some(10)));
    assert!((10..20).contains(&reached.get()), "{reached}");
    assert_eq!(part, whole[..part.len()]);
}

#[test]
fn halves_stand_still_and_go_on() {
    let halves = "faults:\n- at: 10\n  for: 20s\n  partition: [[validator-0, validator-1]]\n";
    let (played, lines) = played(&format!("blocks: 20\nrunners: 0\n{halves}"), 1);
    assert_eq!(played.breach, None);
    let at = |kind| lines.iter().find(|line| line.kind == kind).expect("it happened").time;
    let passed = at("heal").saturating_sub(at("fault"));
    assert!(passed >= Duration::from_secs(20), "{passed:?}");
    // Messages in flight when the link was cut decide at most one more block.
    let between = lines
        .iter()
        .filter(|line| line.kind == "block" && line.time > at("fault") && line.time <= at("heal"));
    assert!(between.count() <= 2, "{lines:?}");
}

#[test]
fn a_chain_that_stands_still_is_told() {
    let halves = "faults: [{at: 10, partition: [[validator-0, validator-1]]}]\n";
    let (played, _) = played(&format!("blocks: 40\nrunners: 0\npatience: 20s\n{halves}"), 1);
    let breach = played.breach.expect("no block is decided");
    assert_eq!(breach.invariant, "liveness");
    assert!((10..14).contains(&breach.height.get()), "{breach:?}");
}

#[test]
fn a_killed_runner_comes_back_and_works() {
    let yaml =
        "blocks: 60\nrunners: 1\nload: {jobs: 1}\nfaults: [{at: 5, for: 4, kill: runner-0}]\n";
    let (played, _) = played(yaml, 2);
    assert_eq!(played.breach, None);
    assert!(played.submitted >= 10, "{played:?}");
    assert!(played.verified * 2 > played.submitted, "{played:?}");
}

#[test]
fn timers_fire() {
    let (played, lines) = played("blocks: 50\nrunners: 0\nload: {timers: 30}\n", 4);
    assert_eq!(played.breach, None);
    assert!(lines.iter().any(|line| line.what.contains("TimerFired")), "{lines:#?}");
}

/// Two of seven validators lie, which is f. Under `quorum` they make a killed runner present, under
/// `committee` they cannot.
#[test]
fn liars_fabricate_a_presence_where_the_rule_lets_them() {
    let script = named("liars").expect("it is there").script().expect("a scenario");
    let mut told = Vec::new();
    let of_rule = |rule, told: &mut Vec<Line>| {
        let script = Script { rule, ..script.clone() };
        let played = play(&script, 3, None, &mut |line| told.push(line)).expect("it is played");
        assert_eq!(played.breach, None, "{rule:?}");
        played.presence
    };
    let quorum = of_rule(PresenceRule::Quorum, &mut told);
    assert_eq!(quorum.fabricated.len(), 1, "{quorum:?}");
    let wrong = &quorum.fabricated[0];
    assert_eq!((wrong.runner, &wrong.by), (2, &[5, 6].into()));
    assert!(wrong.first.get() > 15 && wrong.blocks > 3, "{wrong:?}");
    let lines: Vec<_> = told.iter().filter(|line| line.kind == "fabricated").collect();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].what.contains("runner-2 is present"), "{lines:?}");
    assert!(quorum.seen > 100 && quorum.present > 0, "{quorum:?}");
    let committee = of_rule(PresenceRule::Committee, &mut Vec::new());
    assert_eq!(committee.fabricated, []);
}

/// One of four validators lies about one runner for a while.
#[test]
fn a_lie_is_a_fault() {
    let of = |rule: &str, votes: &str, runner: &str| {
        let yaml = format!(
            "rule: {rule}\nrunners: 3\nblocks: 60\nfaults:\n- {{at: 5, kill: runner-0}}\n\
             - {{at: 20, for: 20, lie: {{on: validator-3, votes: {votes}, of: {runner}}}}}\n"
        );
        let (played, lines) = played(&yaml, 5);
        assert_eq!(played.breach, None, "{yaml}");
        let lie = format!("lie {votes} of {runner} by validator-3");
        assert!(lines.iter().any(|line| line.kind == "fault" && line.what.contains(&lie)));
        played.presence
    };
    for votes in ["ones", "flip"] {
        let quorum = of("quorum", votes, "runner-0");
        let [wrong] = &quorum.fabricated[..] else { panic!("{quorum:?}") };
        assert_eq!((wrong.runner, &wrong.by), (0, &[3].into()));
        assert!((19..=21).contains(&wrong.first.get()) && wrong.blocks < 25, "{wrong:?}");
    }
    assert_eq!(of("committee", "ones", "runner-0").fabricated, []);
    // One of four is enough to hide a connected runner if a certificate leaves out another vote.
    let committee = of("committee", "zeros", "runner-2");
    let [wrong] = &committee.hidden[..] else { panic!("{committee:?}") };
    assert_eq!((wrong.runner, &wrong.by), (2, &[3].into()));
    assert_eq!(committee.seen, committee.present + wrong.blocks);
}

/// Every included scenario, shortened.
#[test]
fn scenarios_of_the_library_hold() {
    for scenario in all() {
        let mut script = scenario.script().expect("a scenario");
        script.blocks = script.blocks.min(60);
        let played = play(&script, 1, None, &mut |_| ()).expect("it is played");
        assert_eq!(played.breach, None, "{}", scenario.name);
    }
}

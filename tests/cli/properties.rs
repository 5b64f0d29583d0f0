//! `actor test` with tests that have parameters: what a failure shows, how it is repeated, and what
//! Python gets.

use crate::{
    shape,
    support::{Folder, outcome},
};
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt as _};

/// The payment that does not divide by the number of people loses the rest.
const SPLIT: &str = r#"
def split(ctx, payload):
    order = json_decode(payload)
    share = order["amount"] // order["people"]
    return [share] * order["people"]

def test_loses_nothing(ctx, amount: int, people: int):
    people = mock.bound(people, 1, 10)
    amount = mock.bound(amount, 0, 1000000)
    shares = mock.call(split, {"amount": amount, "people": people})
    print("shares", shares)
    if sum(shares) != amount:
        fail("lost", amount - sum(shares))

def test_gives_each_a_share(people: int):
    people = mock.bound(people, 0, 99)
    mock.assume(people > 0)
    if len(mock.call(split, {"amount": 0, "people": people})) != people:
        fail("another number of shares")
"#;

#[test]
fn a_failing_property_is_shown_at_its_simplest_and_repeated_by_its_seed() {
    let folder = Folder::new();
    fs::write(folder.path("split.star"), SPLIT).unwrap();
    let tested = folder.run(&["actor", "test", "split.star"]);
    assert_eq!((tested.code, tested.stderr.as_str()), (1, "error: 1 of 2 tests failed\n"));
    insta::assert_snapshot!(tested.stdout);
    assert_eq!(folder.run(&["actor", "test", "split.star"]).stdout, tested.stdout);
    assert_eq!(folder.run(&["-q", "actor", "test", "split.star"]).stdout, "test_loses_nothing\n");

    let json = folder.run(&["actor", "test", "split.star", "-o", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&json["tests"][0]).unwrap());
    let passed = &json["tests"][1];
    assert_eq!((&passed["inputs"], &passed["repeat"]), (&32.into(), &Value::Null));
    assert!(passed["discards"].as_u64().unwrap() > 0);

    // The command that the report names gives the report.
    let again = json["tests"][0]["repeat"].as_str().unwrap();
    let words: Vec<_> = again.split(' ').skip(1).collect();
    let repeated = folder.run(&words);
    let failure = |text: &str| text.split("\n\n").next().unwrap().to_owned();
    assert!(tested.stdout.starts_with(&failure(&repeated.stdout)), "{}", repeated.stdout);
    shape::seen(&["actor test"]);
}

#[test]
fn a_new_seed_is_told_and_a_given_one_is_used() {
    let folder = Folder::new();
    fs::write(folder.path("split.star"), SPLIT).unwrap();
    let fuzzed = folder.run(&["actor", "test", "split.star", "--fuzz", "-o", "json"]);
    let json: Value = serde_json::from_str(&fuzzed.stdout).unwrap();
    let seed = json["tests"][0]["seed"].as_u64().unwrap();
    assert_eq!(fuzzed.stderr.lines().next(), Some(format!("seed {seed}").as_str()));
    assert_eq!(json["tests"][1]["inputs"], 1_000);
    let hex = format!("{seed:#x}");
    let args = ["actor", "test", "split.star", "--fuzz", "1000", "--seed", &hex, "-o", "json"];
    let again = folder.run(&args);
    assert_eq!((again.code, again.stdout), (1, fuzzed.stdout));
    assert!(!again.stderr.contains("seed"), "{}", again.stderr);
}

#[test]
fn what_cannot_be_run_says_what_to_do() {
    let folder = Folder::new();
    let source =
        "def test_names(ctx, names: list, more):\n    pass\n\ndef test_plain():\n    pass\n";
    fs::write(folder.path("bad.star"), source).unwrap();
    let tested = folder.run(&["actor", "test", "bad.star"]);
    assert_eq!(tested.code, 1);
    insta::assert_snapshot!(tested.stdout);
    insta::assert_snapshot!(folder.fails(2, &["actor", "test", "--fuzz", "bad.star"]));
    insta::assert_snapshot!(folder.fails(2, &["actor", "test", "bad.star", "--seed", "many"]));
}

/// A Python that shows what it gets, with Hypothesis or without.
fn python(folder: &Folder, has_hypothesis: bool) -> String {
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = -c ]; then exit {}; fi\n\
         echo \"$@\"; echo examples ${{COWBOYCTL_MAX_EXAMPLES:-none}}\n\
         for at in ${{PYTHONPATH:-nowhere}}; do ls $at 2>&1 | grep hypothesis; done\nexit 1\n",
        i32::from(!has_hypothesis)
    );
    let path = folder.path("python");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn hypothesis_gets_the_number_of_examples_and_the_seed() {
    let folder = Folder::new();
    fs::write(folder.path("test_it.py"), "").unwrap();
    let run = |args: &[&str], has_hypothesis| {
        let python = python(&folder, has_hypothesis);
        let args = [&["actor", "test", "test_it.py", "--python", &python], args].concat();
        let ran = outcome(&mut folder.command(&args));
        (ran.stdout, ran.stderr)
    };
    let (stdout, stderr) = run(&["--fuzz", "50", "--seed", "7"], true);
    assert_eq!(
        stdout,
        "-m pytest test_it.py --hypothesis-seed=7 -p cowboyctl_hypothesis\nexamples 50\n\
         cowboyctl_hypothesis.py\n"
    );
    assert_eq!(stderr, "error: tests failed\n  the same examples again: --fuzz 50 --seed 7\n");
    let (stdout, stderr) = run(&["--fuzz"], true);
    let seed = stderr.lines().next().and_then(|line| line.strip_prefix("seed ")).unwrap();
    assert!(stdout.contains(&format!("--hypothesis-seed={seed} ")), "{stdout}");
    assert!(stdout.contains("examples 1000\n"), "{stdout}");
    // Without --fuzz the project's own number of examples counts.
    let plain = "-m pytest test_it.py\nexamples none\n";
    let seeded = "-m pytest test_it.py --hypothesis-seed=7\nexamples none\n";
    assert_eq!(run(&[], true).0, plain);
    assert_eq!(run(&["--seed", "7"], true).0, seeded);
    assert_eq!(run(&["--seed", "7"], false).0, plain);

    let (stdout, stderr) = run(&["--fuzz"], false);
    assert_eq!(stdout, "");
    let shown = stderr.replace(&folder.path("python").display().to_string(), "PYTHON");
    insta::assert_snapshot!(shown);
}

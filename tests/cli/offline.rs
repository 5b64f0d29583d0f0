//! Commands that need no devnet, and errors when a devnet is missing.

use crate::{
    shape,
    support::{Folder, outcome},
};
use serde_json::Value;
use std::{fs, io::Read as _, net::TcpListener, os::unix::fs::PermissionsExt as _, process::Stdio};

#[test]
fn a_template_validates() {
    let folder = Folder::new();
    let wrote = folder.run(&["devnet", "init"]);
    assert_eq!(
        (wrote.code, wrote.stdout.as_str(), wrote.stderr.as_str()),
        (0, "", "wrote devnet.yaml; start it: cowboyctl devnet up -f devnet.yaml\n")
    );
    insta::assert_snapshot!(folder.prints(&["devnet", "validate", "devnet.yaml"]));
    assert_eq!(folder.prints(&["-q", "devnet", "validate", "devnet.yaml"]), "local\n");

    let again = folder.fails(8, &["devnet", "init"]);
    insta::assert_snapshot!(again, @r"
    error: devnet.yaml already exists
      overwrite it with --force, or name another file
    ");
    folder.run(&["devnet", "init", "--force"]);
    let template = fs::read_to_string(folder.path("devnet.yaml")).unwrap();
    assert_eq!(folder.prints(&["devnet", "init", "-"]), template);
    // The shell creates an empty file for `init > devnet.yaml` before the command runs.
    fs::write(folder.path("empty.yaml"), "").unwrap();
    assert_eq!(folder.run(&["devnet", "init", "empty.yaml"]).code, 0);
    assert_eq!(fs::read_to_string(folder.path("empty.yaml")).unwrap(), template);
}

#[test]
fn a_topology_resolves_to_json_and_yaml() {
    let folder = Folder::new();
    let text = "name: small\nvalidators: 1\nrunners: [{name: worker, kinds: [http]}]\n\
                accounts: {count: 0, extra: [{name: alice, balance: 5cby}]}\n";
    fs::write(folder.path("small.yaml"), text).unwrap();
    insta::assert_snapshot!(folder.prints(&["devnet", "validate", "small.yaml", "-o", "json"]));
    let yaml = folder.prints(&["devnet", "validate", "small.yaml", "-o", "yaml"]);
    assert!(yaml.starts_with("file: small.yaml\nvalid: true\nname: small\n"), "{yaml}");
    let lines = folder.prints(&["devnet", "validate", "small.yaml", "-o", "jsonl"]);
    assert_eq!(lines.lines().count(), 1);
    shape::seen(&["devnet validate"]);
}

#[test]
fn containers_are_exported_for_this_user_only() {
    let folder = Folder::new();
    let text = "name: small\nimage: registry.example/small:1\nrunners: 1\nvalidators:\n\
                - {name: alpha, memory: 512MB, restart: true, env: {ODD: 'a $HOME: b'}}\n";
    fs::write(folder.path("small.yaml"), text).unwrap();
    for kind in ["compose", "kubernetes"] {
        let export = ["devnet", "export", kind, kind, "-f", "small.yaml"];
        let told: Value =
            serde_json::from_str(&folder.prints(&[&export[..], &["-o", "json"]].concat())).unwrap();
        assert_eq!((&told["validators"], &told["runners"]), (&1.into(), &1.into()));
        let said = folder.fails(8, &export);
        assert!(said.contains("is not empty"), "{said}");
        let mut folders = vec![folder.path(kind)];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let entry = entry.unwrap();
                let open = entry.metadata().unwrap().permissions().mode() & 0o077;
                assert_eq!(open, 0, "{}", entry.path().display());
                folders.extend(entry.path().is_dir().then(|| entry.path()));
            }
        }
    }
    let text = fs::read_to_string(folder.path("compose/compose.yaml")).unwrap();
    let file: Value = serde_yaml::from_str(&text).unwrap();
    let alpha = &file["services"]["alpha"];
    assert_eq!(alpha["image"], "registry.example/small:1");
    assert_eq!(
        (&alpha["restart"], &alpha["mem_limit"]),
        (&"on-failure".into(), &512_000_000.into())
    );
    assert_eq!(alpha["environment"]["ODD"], "a $$HOME: b", "a variable of the file has one dollar");
    let runner = &file["services"]["runner-0"];
    assert_eq!(runner["depends_on"]["alpha"]["condition"], "service_healthy");
    assert!(text.contains("restart: \"no\"\n"), "YAML 1.1 has it as a truth value: {text}");
    let peers = fs::read_to_string(folder.path("compose/shared/peers.yaml")).unwrap();
    assert!(peers.contains("p2p: alpha:9000") && peers.contains("https://alpha:9002"), "{peers}");
    let key = fs::read_to_string(folder.path("compose/validators/alpha/key")).unwrap();
    assert!(!text.contains(key.trim()));
    shape::seen(&["devnet export compose", "devnet export kubernetes"]);
}

#[test]
fn an_unreliable_topology_warns_and_an_impossible_one_is_refused() {
    let folder = Folder::new();
    fs::write(folder.path("seven.yaml"), "validators: 7\n").unwrap();
    let seven = folder.run(&["devnet", "validate", "seven.yaml", "-q"]);
    assert_eq!((seven.code, seven.stdout.as_str()), (0, "local\n"));
    insta::assert_snapshot!(seven.stderr, @"warning: with 7 validators under `committee` a runner needs 3 of its 4 validators among the 5 votes of a certificate, which leave out 2: where all are left out equally often, it is present in 71.4 % of the blocks");

    fs::write(folder.path("sixteen.yaml"), "name: big\nvalidators: 16\n").unwrap();
    insta::assert_snapshot!(folder.fails(2, &["devnet", "validate", "sixteen.yaml"]), @"
    error: sixteen.yaml:1:1: chain.presence.threshold_rule: with 16 validators `committee` needs 6 votes and a runner has 5 connections: no runner would ever be present; expected `subset`, or fewer validators
      1 | name: big
        | ^^^^
      every field with its default: cowboyctl devnet init -
    ");
}

#[test]
fn a_runner_is_registered_for_what_it_can_execute_alone() {
    let folder = Folder::new();
    let register = ["runner", "register", "--key-file", "key", "--kinds", "custom,llm"];
    insta::assert_snapshot!(folder.fails(2, &register), @r"
    error: the runner cannot execute jobs of kind llm: they need an OpenAI-compatible endpoint in `llm`: base_url and models
      configure it in a file: --executors FILE; or leave the kind out: --kinds KIND,KIND
    ");
    let with = |text: &str| {
        fs::write(folder.path("executors.yaml"), text).unwrap();
        [&register[..], &["--executors", "executors.yaml"]].concat()
    };
    let broken = "llm:\n  base_url: http://me:s3cret@h\n  models: {small: real}\n";
    let error = folder.fails(2, &with(broken));
    assert!(error.contains("executors.yaml:2:13: llm.base_url: a URL with more than"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
    // The file is valid now: only the devnet is missing.
    folder.fails(4, &with("llm: {base_url: 'http://h/v1', models: {small: real}}"));
}

#[test]
fn what_validators_and_rules_allow_is_told_without_a_devnet() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.prints(&["presence", "feasibility", "6..7"]), @r"
    VALIDATORS  RULE       SUBSET  QUORUM  NEEDED  PRESENT  TO FABRICATE  TO HIDE
             6  committee       4       5       2  100.0 %             2        2
             6  quorum          4       5       2  100.0 %             2        2
             6  subset          4       5       1  100.0 %             1        3
             7  committee       4       5       3   71.4 %             3        0
             7  quorum          4       5       2  100.0 %             2        1
             7  subset          4       5       1  100.0 %             1        2
    ");
    let seven = ["presence", "feasibility", "7", "--rule", "committee", "-o", "json"];
    insta::assert_snapshot!(folder.prints(&seven), @r#"
    [
      {
        "validators": 7,
        "rule": "committee",
        "subset": 4,
        "quorum": 5,
        "threshold": 3,
        "present": "5",
        "out_of": "7",
        "to_fabricate": 3,
        "to_hide": 0
      }
    ]
    "#);
    for wrong in ["0", "65", "7..6", "4..", "many"] {
        let refused = folder.fails(2, &["presence", "feasibility", wrong]);
        assert!(refused.contains("expected a number from 1 to 64"), "{refused}");
    }
}

#[test]
fn a_bad_topology_is_named_with_file_line_and_field() {
    let folder = Folder::new();
    fs::write(folder.path("bad.yaml"), "name: x\nchain:\n  block_time: soon\n").unwrap();
    insta::assert_snapshot!(folder.fails(2, &["devnet", "validate", "bad.yaml"]), @r#"
    error: bad.yaml:3:15: chain.block_time: invalid value: string "soon", expected a duration from 0ms to 60s, as 250ms or 1s
      3 |   block_time: soon
        |               ^^^^
      every field with its default: cowboyctl devnet init -
    "#);
    insta::assert_snapshot!(folder.fails(2, &["devnet", "up", "-f", "none.yaml"]), @"
    error: none.yaml: no such file or folder
      every field with its default: cowboyctl devnet init -
    ");
}

#[test]
fn without_a_devnet_commands_say_how_to_start_one() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.fails(4, &["chain", "head"]), @r"
    error: no devnet is running
      start one: cowboyctl devnet up --detach
    ");
    insta::assert_snapshot!(folder.fails(4, &["--devnet", "nowhere", "chain", "head"]), @r"
    error: there is no devnet `nowhere`
      start one: cowboyctl devnet up --detach --name nowhere
    ");
    for args in [
        &["devnet", "status"][..],
        &["devnet", "down"],
        &["devnet", "logs"],
        &["devnet", "env"],
        &["devnet", "reset"],
        &["account", "ls"],
        &["job", "submit", "custom", "--", "true"],
    ] {
        assert!(folder.fails(4, args).starts_with("error: no devnet is "), "{args:?}");
    }
    let mut command = folder.command(&["devnet", "down"]);
    let named = outcome(command.env("COWBOYCTL_DEVNET", "nowhere"));
    assert_eq!(named.code, 4);
    assert!(named.stderr.contains("nowhere"), "{named:?}");
    assert_eq!(folder.prints(&["devnet", "ls", "-o", "json"]), "[]\n");
    assert_eq!(folder.prints(&["devnet", "ls", "-q"]), "");
}

#[test]
fn a_stopped_devnet_is_told_apart() {
    let folder = Folder::new();
    let text = "validators: 1\nrunners: 1\n";
    folder.devnet("idle").lock().unwrap().write_topology(text).unwrap();
    insta::assert_snapshot!(folder.fails(4, &["chain", "head", "--devnet", "idle"]), @r"
    error: devnet `idle` is not running
      start it: cowboyctl devnet up --detach --name idle
    ");
    insta::assert_snapshot!(folder.fails(4, &["chain", "head"]), @r"
    error: no devnet is running
      start one: cowboyctl devnet up --detach --name idle
    ");
    insta::assert_snapshot!(folder.prints(&["devnet", "ls"]), @"
    NAME  STATUS   HEIGHT  VALIDATORS  RUNNERS  CONTROL API  PROCESS
    idle  stopped       -           1        1  -                  -
    ");
    let status = folder.run(&["devnet", "status", "-o", "json"]);
    assert_eq!(status.code, 4, "{status:?}");
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["running"], false);
    assert_eq!(status["validators"][0]["status"], "stopped");
    let down = folder.run(&["devnet", "down", "idle", "--quiet"]);
    assert_eq!((down.code, down.stdout.as_str(), down.stderr.as_str()), (0, "idle\n", ""));
    folder.fails(3, &["devnet", "logs", "idle"]);
    assert_eq!(folder.run(&["devnet", "reset", "idle"]).code, 0);
}

#[test]
fn usage_errors_end_with_2() {
    let folder = Folder::new();
    for args in [
        &["devnet", "up", "--validators", "65"][..],
        &["devnet", "up", "--wait", "3"],
        &["chain", "block", "soon"],
        &["account", "transfer", "a", "b", "1.5"],
        &["-o", "xml", "devnet", "ls"],
        &["timer", "ls", "--limit", "some"],
        &[],
    ] {
        let usage = folder.run(args);
        assert_eq!((usage.code, usage.stdout.as_str()), (2, ""), "{args:?}: {usage:?}");
    }
    let mut command = folder.command(&["devnet", "ls"]);
    assert_eq!(outcome(command.env("COWBOYCTL_OUTPUT", "xml")).code, 2);
    let mut command = folder.command(&["devnet", "ls"]);
    assert_eq!(outcome(command.env("COWBOYCTL_OUTPUT", "json")).stdout, "[]\n");
}

#[test]
fn completions_and_manual_pages_are_printed() {
    let folder = Folder::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(folder.prints(&["completions", shell]).contains("cowboyctl"), "{shell}");
    }
    assert_eq!(folder.run(&["completions", "tcsh"]).code, 2);
    assert!(folder.prints(&["man"]).contains("cowboyctl"));
    assert!(folder.prints(&["man", "job", "submit", "custom"]).contains("cowboyctl\\-job"));
    assert!(folder.fails(3, &["man", "job", "undo"]).contains("cowboyctl job undo"));
    folder.run(&["man", "--dir", "pages"]);
    assert!(folder.path("pages/cowboyctl-presence-verify.1").is_file());
}

#[test]
fn names_complete() {
    let folder = Folder::new();
    folder.devnet("alpha").lock().unwrap();
    let mut command = folder.command(&["--", "cowboyctl", "--devnet", "al"]);
    let found = outcome(command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2"));
    assert_eq!((found.code, found.stdout.trim()), (0, "alpha"), "{found:?}");
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let folder = Folder::new();
    let mut command = folder.command(&["completions", "bash"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_devnet_in_use_is_a_conflict() {
    let folder = Folder::new();
    let lock = folder.devnet("busy").lock().unwrap();
    let pid = std::process::id();
    for args in
        [&["devnet", "up", "--name", "busy"][..], &["devnet", "up", "--detach", "--name", "busy"]]
    {
        let refused = folder.fails(8, args);
        assert!(refused.starts_with(&format!("error: devnet `busy` is in use by process {pid}\n")));
    }
    drop(lock);
}

#[test]
fn another_topology_for_a_chain_is_a_conflict() {
    let folder = Folder::new();
    let devnet = folder.devnet("old");
    devnet.lock().unwrap().write_topology("name: old\nvalidators: 2\n").unwrap();
    fs::create_dir_all(devnet.path().join("validators/validator-0")).unwrap();
    let refused =
        folder.fails(8, &["devnet", "up", "--detach", "--name", "old", "--validators", "3"]);
    insta::assert_snapshot!(refused, @r"
    error: devnet `old` has a chain of another topology
      other validators
      go on with it without these options, or delete it: cowboyctl devnet reset old
    ");
}

#[test]
fn a_start_that_fails_says_why_at_once() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    fs::write(folder.path("taken.yaml"), format!("api: {{port: {port}}}\n")).unwrap();
    for args in [
        &["devnet", "up", "-f", "taken.yaml", "--detach"][..],
        &["devnet", "up", "-f", "taken.yaml"],
    ] {
        let refused = folder.fails(8, args);
        assert!(refused.contains(&format!("port {port} is taken")), "{refused}");
    }
    assert_eq!(folder.prints(&["devnet", "ls", "-o", "json", "-q"]), "local\n");
}

#[test]
fn a_module_is_checked_and_tested_without_a_devnet() {
    let folder = Folder::new();
    let source = "LIMIT = 3\n\ndef add(ctx, payload):\n    n = pvm_host.get_state(\"n\", 0) + int(payload)\n    \
                  if n > LIMIT:\n        fail(\"over\", LIMIT)\n    pvm_host.set_state(\"n\", n)\n    return n\n\n\
                  def test_adds():\n    mock.call(add, \"2\")\n    if mock.call(add, \"1\") != 3:\n        fail()\n\n\
                  def test_goes_over():\n    print(\"adds 4\")\n    mock.call(add, \"4\")\n";
    fs::write(folder.path("adder.star"), source).unwrap();
    insta::assert_snapshot!(folder.prints(&["actor", "check", "adder.star"]));
    assert_eq!(folder.prints(&["-q", "actor", "check", "adder.star"]), "add\n");
    folder.prints(&["-o", "json", "actor", "check", "adder.star"]);

    let tested = folder.run(&["actor", "test", "adder.star"]);
    assert_eq!((tested.code, tested.stderr.as_str()), (1, "error: 1 of 2 tests failed\n"));
    insta::assert_snapshot!(tested.stdout);
    let json = folder.run(&["actor", "test", "adder.star", "-o", "json"]);
    insta::assert_snapshot!(json.stdout);
    assert_eq!(folder.run(&["-q", "actor", "test", "adder.star"]).stdout, "test_goes_over\n");
    let filtered = folder.run(&["-q", "actor", "test", "adder.star", "--filter", "adds"]);
    assert_eq!((filtered.code, filtered.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(folder.fails(3, &["actor", "test", "adder.star", "--filter", "none"]), @r"
    error: adder.star: no function test_*none*
      a test is a function test_*
    ");
    let args = ["actor", "test", "adder.star", "--filter", "adds", "--coverage", "adder.info"];
    let covered = folder.prints(&args);
    insta::assert_snapshot!(covered, @r"
    ok      test_adds  1756 cycles

    1 passed, 0 failed
    coverage: 4 of 5 lines (80.0 %), 1 of 2 branches (50.0 %), 1 of 1 functions (100.0 %); line 6 never ran
              adder.info
    ");
    insta::assert_snapshot!(fs::read_to_string(folder.path("adder.info")).unwrap(), @r"
    TN:
    SF:adder.star
    FN:3,add
    FNDA:2,add
    FNF:1
    FNH:1
    BRDA:5,0,0,0
    BRDA:5,0,1,2
    BRF:2
    BRH:1
    DA:4,2
    DA:5,2
    DA:6,0
    DA:7,2
    DA:8,2
    LF:5
    LH:4
    end_of_record
    ");
    let json = folder.run(&["-o", "json", "actor", "test", "adder.star", "--coverage", "a.info"]);
    let covered: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(covered["coverage"]["missed"], Value::Array(Vec::new()), "another test ran line 6");
    let nameless = folder.fails(2, &["actor", "test", "-", "--coverage", "b.info"]);
    assert!(nameless.contains("standard input has no file name"), "{nameless}");
    let refused = folder.fails(3, &["actor", "test", "adder.star", "--coverage", "no/such/a.info"]);
    assert!(refused.contains("no/such/a.info"), "{refused}");
    let short = folder.run(&["actor", "test", "adder.star", "--filter", "adds", "--cycles", "500"]);
    assert!(
        short.stdout.contains("OutOfCycles: the limit is 500 cycles, the next step needs"),
        "{}",
        short.stdout
    );
    shape::seen(&["actor check", "actor test"]);
}

#[test]
fn a_module_that_would_be_refused_is_named_with_its_place() {
    let folder = Folder::new();
    for (source, expected) in [
        (
            "def f(ctx, payload):\n    return nothing\n",
            "bad.star:2:12: ModuleRefused: undefined name nothing",
        ),
        (
            "x = 1.5\n",
            "bad.star:1:5: ModuleRefused: there are no floats; use integers of a smaller unit",
        ),
        (
            "def f(ctx, payload)\n    pass\n",
            "bad.star:1:20: ModuleRefused: expected `:`, found the end of the line",
        ),
        ("x = [1][2]\n", "bad.star:1:5: ActorError: index 2 is out of range: 1 elements"),
        (
            "def f(x: 7):\n    pass\n",
            "bad.star:1:10: ModuleRefused: an annotation must be a type, not a value",
        ),
    ] {
        fs::write(folder.path("bad.star"), source).unwrap();
        let error = folder.fails(6, &["actor", "check", "bad.star"]);
        assert!(error.starts_with(&format!("error: {expected}\n")), "{error}");
        assert!(error.lines().count() <= 3, "{error}");
    }
    insta::assert_snapshot!(
        folder.fails(3, &["actor", "check", "missing.star"]),
        @"
    error: missing.star: no such file or folder
      check its name; paths begin at [folder]
    "
    );
}

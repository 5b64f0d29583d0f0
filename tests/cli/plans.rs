//! `speculation plan` without a devnet, and `follow`, `retry` and `load` against a devnet's
//! answers.

use crate::{
    shape, speculation,
    support::{Fake, Folder, outcome},
};
use cowboy_devnet::types::PipelineStatus;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{fmt::Write as _, fs, process::Stdio, sync::mpsc, time::Duration};

/// Pipelines and a topology in a folder.
fn folder() -> Folder {
    let folder = Folder::new();
    let chain = |length: usize| {
        let mut text = "name: chain\ntasks:\n".to_owned();
        for at in 0..length {
            let parent = at.checked_sub(1).map_or(String::new(), |at| format!("t{at}"));
            writeln!(text, "- {{id: t{at}, depends_on: [{parent}], command: [cat]}}").unwrap();
        }
        text
    };
    let mut wide = "name: wide\ntasks:\n- {id: seed, command: [cat]}\n".to_owned();
    for at in 0..7 {
        writeln!(wide, "- {{id: w{at}, depends_on: [seed], command: [cat]}}").unwrap();
    }
    let diamond = "name: diamond\ntasks:\n\
                   - {id: text, command: [cat]}\n\
                   - {id: upper, depends_on: [text], command: [cat], fault: {slow_ms: 2000}}\n\
                   - {id: words, depends_on: [text], command: [cat], fault: wrong_proof}\n\
                   - {id: both, depends_on: [upper, {task: words, order_only: true}], command: [cat]}\n";
    let refused = "name: refused\ntasks:\n\
                   - {id: short, command: [cat], claim_ms: 60000}\n\
                   - {id: after, depends_on: [short], command: [cat]}\n";
    let topology = "chain: {block_time: 250ms}\n\
                    tasks: {bond_base: 120000000000}\n\
                    speculation: {enabled: true, maxDepth: 3, proof: {latency: 1s}}\n";
    for (name, text) in [
        ("chain.yaml", chain(6)),
        ("deep.yaml", chain(24)),
        ("wide.yaml", wide),
        ("diamond.yaml", diamond.to_owned()),
        ("refused.yaml", refused.to_owned()),
        ("topology.yaml", topology.to_owned()),
    ] {
        fs::write(folder.path(name), text).unwrap();
    }
    folder
}

#[test]
fn plans_read_well() {
    let folder = folder();
    let mut all = String::new();
    for args in [
        &["chain.yaml"][..],
        &["chain.yaml", "-f", "topology.yaml"],
        &["diamond.yaml", "-f", "topology.yaml", "--work-time", "100ms"],
        &["wide.yaml", "-f", "topology.yaml", "--proof-time", "3s"],
        &["refused.yaml", "-f", "topology.yaml"],
    ] {
        let printed = folder.prints(&[&["speculation", "plan"], args].concat());
        all += &format!("$ cowboyctl speculation plan {}\n{printed}\n", args.join(" "));
    }
    insta::assert_snapshot!(all);
    let quiet = folder.prints(&["-q", "speculation", "plan", "chain.yaml", "-f", "topology.yaml"]);
    assert!(quiet.trim().parse::<u64>().unwrap() > 1_000, "{quiet}");
}

#[test]
fn a_plan_is_told_in_fields_and_what_is_wrong_where_it_is() {
    let folder = folder();
    let plan = |args: &[&str]| -> Value {
        let args = [&["-o", "json", "speculation", "plan"], args].concat();
        serde_json::from_str(&folder.prints(&args)).unwrap()
    };
    let chain = plan(&["chain.yaml", "-f", "topology.yaml"]);
    let task = |at: usize| &chain["graph"][at];
    assert_eq!(task(2)["depth"], 2);
    // The chain requires 120 CBY and 25 per level, the options 100 and 50.
    assert_eq!(task(2)["bond"], "220000000000");
    assert_eq!(task(1)["waits"][0]["for"], "ancestors");
    assert_eq!(task(4)["waits"][0]["for"], "depth_exceeded", "{chain}");
    assert!(chain["speculative_ms"].as_u64() < chain["synchronous_ms"].as_u64(), "{chain}");
    let refused = plan(&["refused.yaml", "-f", "topology.yaml"]);
    let first = &refused["graph"][0];
    assert_eq!((&first["accepted"], &refused["speculative_ms"]), (&false.into(), &Value::Null));
    shape::seen(&["speculation plan"]);

    folder.fails(3, &["speculation", "plan", "none.yaml"]);
    fs::write(folder.path("bad.yaml"), "name: p\ntasks: []\n").unwrap();
    folder.fails(2, &["speculation", "plan", "bad.yaml"]);
    folder.fails(4, &["speculation", "plan", "chain.yaml", "--devnet", "nowhere"]);
    let refused = folder.fails(2, &["speculation", "plan", "chain.yaml", "--workload", "any"]);
    assert!(refused.contains("expected low-latency-pipelines, production-default"), "{refused}");
}

/// The table of AgenC §7.3: each workload sets other options, which change the time that a
/// pipeline takes and the stake that it locks.
#[test]
fn workloads_differ_in_options_and_in_what_a_pipeline_takes() {
    let folder = folder();
    let plan = |file: &str, workload: &str| -> Value {
        let topology = ["-f", "topology.yaml", "--proof-time", "1s"];
        let args = ["-o", "json", "speculation", "plan", file, "--workload", workload];
        // Options of the workload override those of the file.
        serde_json::from_str(&folder.prints(&[&args[..], &topology].concat())).unwrap()
    };
    let mut seen = Vec::new();
    for (workload, mode, depth, branches) in [
        ("low-latency-pipelines", "aggressive", 10, 8),
        ("production-default", "balanced", 5, 4),
        ("safety-critical", "conservative", 2, 2),
        ("testing", "aggressive", 20, 16),
    ] {
        let deep = plan("deep.yaml", workload);
        let options = (&deep["mode"], &deep["max_depth"], &deep["max_parallel_branches"]);
        assert_eq!(options, (&mode.into(), &depth.into(), &branches.into()), "{workload}");
        assert_eq!(deep["confirmed"], 24, "{workload}: {deep}");
        let wide = plan("wide.yaml", workload);
        seen.push((
            deep["speculative_ms"].as_u64().unwrap(),
            deep["locked_at_most"].as_str().unwrap().parse::<u128>().unwrap(),
            wide["speculative_ms"].as_u64().unwrap(),
        ));
    }
    for (at, one) in seen.iter().enumerate() {
        for other in &seen[at + 1..] {
            assert_ne!(one.1, other.1, "what is locked: {seen:?}");
        }
    }
    // More depth and width shortens the time as long as there are enough provers.
    let [low_latency, production, critical, _] = seen[..] else { panic!("{seen:?}") };
    assert!(low_latency.0 <= production.0 && production.0 < critical.0, "{seen:?}");
    assert!(low_latency.2 < production.2 && production.2 < critical.2, "{seen:?}");
}

#[test]
fn what_is_followed_ends_as_the_pipeline_does() {
    let follow = ["speculation", "follow", "latest"];
    let done = speculation::fake(PipelineStatus::Completed).folder.run(&follow);
    assert_eq!(done.code, 0, "{done:?}");
    insta::assert_snapshot!(done.stdout);
    let failed = speculation::fake(PipelineStatus::Failed).folder.run(&follow);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stdout.contains("first  failed"), "{failed:?}");
    assert!(failed.stderr.contains("pipeline 7 ended as failed"), "{failed:?}");
    let running = speculation::fake(PipelineStatus::Running);
    let late = running.folder.fails(5, &[&follow[..], &["--timeout", "300ms"]].concat());
    assert!(late.contains("pipeline 7: no end within 300 ms"), "{late}");
}

/// An interrupted load reports its results so far, and restores the devnet's options.
#[test]
fn an_interrupted_load_reports_what_there_is() {
    let (asked, was_asked) = mpsc::channel();
    let fake = Fake::new(move |request| {
        if request.line == "GET /v1/speculation" {
            asked.send(()).unwrap();
        }
        speculation::with_pipeline(request, PipelineStatus::Running)
    });
    let args = ["-o", "json", "speculation", "load", "--speculation", "off", "--depth", "2"];
    let mut command = fake.folder.command(&args);
    command.args(["--tasks", "10", "--parallel", "1"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The signal handler is installed by the second request.
    for _ in 0..2 {
        was_asked.recv_timeout(Duration::from_secs(60)).unwrap();
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["interrupted"], &report["ratio"]), (&true.into(), &Value::Null));
    assert_eq!(report["runs"][0]["unfinished"], 2, "{report}");
    let posted = fake.requests().into_iter().filter(|one| one.line.ends_with("config"));
    let posted: Vec<_> = posted.filter(|one| one.line.starts_with("POST")).collect();
    let bodies: Vec<_> = posted.iter().map(|one| one.body.as_str()).collect();
    let body = |value: &str| format!(r#"{{"options":{{"enabled":"{value}"}}}}"#);
    assert_eq!(bodies, [body("false"), body("true")]);
}

#[test]
fn a_load_has_bounds() {
    let folder = Folder::new();
    for args in [
        &["--depth", "0"][..],
        &["--depth", "65"],
        &["--tasks", "100001"],
        &["--parallel", "129"],
        &["--duration", "2h"],
        &["--compare", "--speculation", "on"],
    ] {
        let mut command = folder.command(&[&["speculation", "load"], args].concat());
        let refused = outcome(&mut command);
        assert_eq!(refused.code, 2, "{args:?}: {refused:?}");
    }
}

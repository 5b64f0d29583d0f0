//! Run files: valid ones, and the errors of invalid ones.

use super::*;
use crate::messages::RunIf;
use std::fs;

/// No additions to a file.
fn nothing<'a>(folder: &'a Path, env: &'a BTreeMap<String, String>) -> Given<'a> {
    Given { folder, environment: &|_| None, env, only: &[] }
}

fn run(text: &str) -> Result<NewRun, RunFileError> {
    RunFile::parse(text)?.into_run(&nothing(Path::new("."), &BTreeMap::new()))
}

fn plain(value: &str) -> EnvValue {
    EnvValue::Plain(value.to_owned())
}

fn secret(value: &str) -> EnvValue {
    EnvValue::Secret { secret: value.to_owned() }
}

#[test]
fn a_file_with_all_there_is() {
    let text = r#"
name: ci
env: { CI: true, RUST_LOG: warn }
jobs:
  lint: { steps: [cargo fmt --check] }
  unit:
    needs: [lint]
    requires: [linux, x86_64]
    workdir: sources
    image: debian
    env: { RUST_LOG: info, TOKEN: { secret: 12345 } }
    steps:
      - cargo test
      - |
        several
        lines
    artifacts: [{ type: junit, path_glob: "**/*.xml" }]
    caches: [{ type: deps, key: "plain", paths: [~/.cargo, target] }, { key: k, paths: [a] }]
    max_runtime: 20m
    retry: { on: [lease_lost, failure, timeout], max_attempts: 2, backoff: 1m }
    if: always()
    allow_failure: true
    concurrency: { group: gpu, cancel_in_progress: true }
    outputs: [version]
concurrency: main
"#;
    let run = run(text).unwrap();
    assert_eq!(run.name.as_deref(), Some("ci"));
    let main = Concurrency { group: "main".to_owned(), cancel_in_progress: false };
    assert_eq!(run.concurrency, Some(main));
    let [lint, unit] = run.jobs.as_slice() else { panic!("{run:?}") };
    let env = |pairs: &[(&str, EnvValue)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    };
    let expected = JobSpec {
        name: "lint".to_owned(),
        steps: vec!["cargo fmt --check".to_owned()],
        env: env(&[("CI", plain("true")), ("RUST_LOG", plain("warn"))]),
        ..JobSpec::default()
    };
    assert_eq!(*lint, expected);
    let cache = |kind: &str, key: &str, paths: &[&str]| CacheSpec {
        kind: kind.to_owned(),
        key: key.to_owned(),
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
    };
    let expected = JobSpec {
        name: "unit".to_owned(),
        steps: vec!["cargo test".to_owned(), "several\nlines\n".to_owned()],
        env: env(&[("CI", plain("true")), ("RUST_LOG", plain("info")), ("TOKEN", secret("12345"))]),
        workdir: Some("sources".to_owned()),
        image: Some("debian".to_owned()),
        needs: vec!["lint".to_owned()],
        artifacts_of: Vec::new(),
        run_if: Some(RunIf::Always),
        allow_failure: true,
        concurrency: Some(Concurrency { group: "gpu".to_owned(), cancel_in_progress: true }),
        outputs: vec!["version".to_owned()],
        requires: vec!["linux".to_owned(), "x86_64".to_owned()],
        artifacts: vec![ArtifactSpec {
            kind: "junit".to_owned(),
            path_glob: "**/*.xml".to_owned(),
        }],
        caches: vec![cache("deps", "plain", &["~/.cargo", "target"]), cache("", "k", &["a"])],
        max_runtime_seconds: Some(1_200),
        retry: Some(Retry {
            on: Some(vec![RetryOn::LeaseLost, RetryOn::Failure, RetryOn::Timeout]),
            max_attempts: Some(2),
            backoff_seconds: Some(60),
        }),
    };
    assert_eq!(*unit, expected);
}

/// Values that YAML would change.
#[test]
fn values_are_taken_as_they_are_written() {
    let text = "jobs:\n  a:\n    steps: [x]\n    env:\n      A: 1.10\n      B: 0x1F\n      C: True\n      \
                D: 007\n      E: 1e3\n      F: -0\n      G: 18446744073709551616\n      H: ''\n      \
                I: \"x: y\"\nenv: { A: 2.50, J: &j 3.0, K: *j }\n";
    let run = run(text).unwrap();
    let expected = [
        ("A", "1.10"),
        ("B", "0x1F"),
        ("C", "True"),
        ("D", "007"),
        ("E", "1e3"),
        ("F", "-0"),
        ("G", "18446744073709551616"),
        ("H", ""),
        ("I", "x: y"),
        ("J", "3.0"),
        ("K", "3.0"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), plain(value)));
    assert_eq!(run.jobs[0].env, BTreeMap::from(expected));
}

#[test]
fn what_cannot_stand_is_told_with_its_place() {
    let check = |text: &str, expected: &str| {
        assert_eq!(run(text).map(drop).unwrap_err().to_string(), expected, "{text}");
    };
    let jobs = |jobs: &str| format!("jobs:\n{jobs}\n");
    check("", "missing field `jobs`");
    check("jobs: {}", "0 jobs: a run has 1 to 1000");
    check(
        &jobs("  a: { steps: [x] }\n  a: { steps: [x] }"),
        "jobs: `a` appears twice at line 3 column 3",
    );
    check(
        &jobs("  a b: { steps: [x] }"),
        "jobs: `a b`: expected 1 to 128 letters, digits, `-`, `_` and `.` at line 2 column 3",
    );
    check(&jobs("  a: {}"), "jobs.a: missing field `steps` at line 2 column 6");
    check(
        &jobs("  a:\n    steps: []"),
        "jobs.a.steps: 0 steps: a job has 1 to 256 at line 3 column 12",
    );
    check(
        &jobs("  a:\n    steps: [x, '']"),
        "jobs.a.steps[1]: ``: expected a command, of 1 to 65536 bytes at line 3 column 16",
    );
    check(
        &jobs("  a:\n    steps: cargo test"),
        "jobs.a.steps: invalid type: string \"cargo test\", expected a list of commands at line 3 column 12",
    );
    check(
        &jobs("  a:\n    step: [x]"),
        "jobs.a: unknown field `step`, expected one of `matrix`, `steps`, `env`, `needs`, `if`, `allow_failure`, `concurrency`, `outputs`, `requires`, `workdir`, `image`, `artifacts`, `caches`, `max_runtime`, `retry` at line 3 column 5",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    colour: red"),
        "jobs.a: unknown field `colour`, expected one of `matrix`, `steps`, `env`, `needs`, `if`, `allow_failure`, `concurrency`, `outputs`, `requires`, `workdir`, `image`, `artifacts`, `caches`, `max_runtime`, `retry` at line 4 column 5",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    max_runtime: 20"),
        "jobs.a.max_runtime: `20`: expected whole seconds from 1s to 8760h, as 90s, 20m or 2h at line 4 column 18",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    max_runtime: 1.5s"),
        "jobs.a.max_runtime: `1.5s`: expected whole seconds from 1s to 8760h, as 90s, 20m or 2h at line 4 column 18",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    max_runtime: 9000h"),
        "jobs.a.max_runtime: `9000h`: expected whole seconds from 1s to 8760h, as 90s, 20m or 2h at line 4 column 18",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    workdir: ../x"),
        "jobs.a.workdir: `../x`: expected a relative path without `..`, of 512 bytes at most at line 4 column 14",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    workdir: /x"),
        "jobs.a.workdir: `/x`: expected a relative path without `..`, of 512 bytes at most at line 4 column 14",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    requires: [a b]"),
        "jobs.a.requires[0]: `a b`: expected 1 to 128 letters, digits, `-`, `_`, `.` and `:` at line 4 column 16",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    env: { 1A: x }"),
        "jobs.a.env: `1A`: expected a variable's name: letters, digits and `_`, no digit first at line 4 column 12",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    env: { A: }"),
        "jobs.a.env.A: invalid type: unit value, expected a text, {secret: TEXT}, {secret_env: VARIABLE} or {secret_file: FILE} at line 4 column 15",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    env: { A: [x] }"),
        "jobs.a.env.A: invalid type: sequence, expected a text, {secret: TEXT}, {secret_env: VARIABLE} or {secret_file: FILE} at line 4 column 15",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    env: { A: { secret: '' } }"),
        "jobs.a.env.A.secret: a secret's value: expected a text that is not empty at line 4 column 25",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    env: { A: { secrets: x } }"),
        "jobs.a.env.A: unknown field `secrets`, expected one of `secret`, `secret_env`, `secret_file` at line 4 column 17",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    env: { A: { secret: x, secret_env: B } }"),
        "jobs.a.env.A: expected a text, {secret: TEXT}, {secret_env: VARIABLE} or {secret_file: FILE} at line 4 column 15",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    env: { A: {} }"),
        "jobs.a.env.A: expected a text, {secret: TEXT}, {secret_env: VARIABLE} or {secret_file: FILE} at line 4 column 15",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    artifacts: [{ path_glob: '*' }]"),
        "jobs.a.artifacts[0]: missing field `type` at line 4 column 17",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    artifacts: [{ type: t, path_glob: '../*' }]"),
        "jobs.a.artifacts[0].path_glob: `../*`: expected a relative path without `..`, as `**/*.xml`, of 512 bytes at most at line 4 column 39",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    caches: [{ key: k, paths: [/etc] }]"),
        "jobs.a.caches[0].paths[0]: `/etc`: expected a relative path without `..`, or one that begins with `~/` at line 4 column 32",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    caches: [{ key: k, paths: [~/../x] }]"),
        "jobs.a.caches[0].paths[0]: `~/../x`: expected a relative path without `..`, or one that begins with `~/` at line 4 column 32",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    caches: [{ key: k, paths: [] }]"),
        "job `a`: cache `k`: 0 paths: 1 to 32",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    caches: [{ key: 'k-{env:A}', paths: [x] }]"),
        "job `a`: cache `k-{env:A}`: only {hash:FILE} is allowed in braces",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    caches: [{ key: '{hash:no/such}', paths: [x] }]"),
        "job `a`: cache `{hash:no/such}`: no/such: No such file or directory (os error 2)",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    retry: { on: [always] }"),
        "jobs.a.retry.on[0]: unknown variant `always`, expected one of `lease_lost`, `failure`, `timeout` at line 4 column 19",
    );
    check(
        &jobs("  a:\n    steps: [x]\n    retry: { max_attempts: 0 }"),
        "jobs.a.retry.max_attempts: invalid value: integer `0`, expected a whole number from 1 to 100 at line 4 column 28",
    );
    check(
        &jobs("  a: { steps: [x], needs: [b] }"),
        "job `a`: it needs `b`, which is not in the file",
    );
    check(
        &jobs("  a: { steps: [x], needs: [b, b] }\n  b: { steps: [x] }"),
        "job `a`: it needs `b` twice",
    );
    check(&jobs("  a: { steps: [x], needs: [a] }"), "job `a` would wait for itself: a needs a");
    check(
        &jobs(
            "  a: { steps: [x], needs: [b] }\n  b: { steps: [x], needs: [c] }\n  \
             c: { steps: [x], needs: [b] }\n  d: { steps: [x] }",
        ),
        "job `b` would wait for itself: b needs c needs b",
    );
    check(
        "jobs:\n  a: { steps: [x] }\nname: [a]",
        "name: invalid type: sequence, expected 1 to 128 bytes on a line at line 3 column 7",
    );
    check(
        "jobs:\n  a: { steps: [x }",
        "did not find expected ',' or ']' at line 2 column 18, while parsing a flow sequence at line 2 column 15",
    );
    check(
        "--- 1\n--- 2",
        "invalid type: integer `1`, expected a run file, with `jobs` and perhaps `name` and `env` at line 1 column 5",
    );
    check(
        "[]",
        "invalid type: sequence, expected a run file, with `jobs` and perhaps `name` and `env`",
    );
}

#[test]
fn a_run_is_no_longer_than_a_server_takes() {
    let step = "x".repeat(60_000);
    let steps = format!("[{}]", vec![step; 18].join(", "));
    let error = run(&format!("jobs: {{ a: {{ steps: {steps} }} }}")).unwrap_err();
    assert!(matches!(error, RunFileError::Length(length) if length > MAX_MESSAGE), "{error}");
}

#[test]
fn secrets_come_from_the_environment_and_from_files() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("pin.txt"), "1234\n\n").unwrap();
    fs::write(folder.path().join("dos.txt"), "1234\r\n").unwrap();
    fs::write(folder.path().join("empty.txt"), "\n").unwrap();
    fs::write(folder.path().join("bytes"), b"\xff").unwrap();
    let environment = |name: &str| (name == "KEY").then(|| "from outside".to_owned());
    let read = |env: &str, given: &[(&str, &str)]| {
        let text = format!("env: {env}\njobs: {{ a: {{ steps: [x], env: {env} }} }}");
        let given: BTreeMap<_, _> =
            (given.iter()).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let given = Given { environment: &environment, ..nothing(folder.path(), &given) };
        RunFile::parse(&text)?.into_run(&given).map(|run| run.jobs[0].env["A"].clone())
    };
    let check = |env: &str, given: &[(&str, &str)], expected: Result<EnvValue, &str>| {
        let got = read(env, given).map_err(|error| error.to_string());
        assert_eq!(got, expected.map_err(str::to_owned), "{env}");
    };
    check("{ A: { secret_env: KEY } }", &[], Ok(secret("from outside")));
    check("{ A: { secret_file: pin.txt } }", &[], Ok(secret("1234\n")));
    check("{ A: { secret_file: dos.txt } }", &[], Ok(secret("1234")));
    check(
        "{ A: { secret: no: way } }",
        &[],
        Err(
            "did not find expected ',' or '}' at line 1 column 23, while parsing a flow mapping at line 1 column 11",
        ),
    );
    check(
        "{ A: { secret_env: NONE } }",
        &[],
        Err("env: A: NONE is not in the environment, or is not UTF-8: export it"),
    );
    check(
        "{ A: { secret_file: none } }",
        &[],
        Err("env: A: secret_file none: No such file or directory (os error 2)"),
    );
    check(
        "{ A: { secret_file: empty.txt } }",
        &[],
        Err("env: A: the secret is empty, or has a NUL in it"),
    );
    check("{ A: { secret_file: bytes } }", &[], Err("env: A: secret_file bytes: it is not UTF-8"));
    // The command line overrides the file, but secrets stay secret.
    check("{ A: { secret_env: NONE } }", &[("A", "typed")], Ok(secret("typed")));
    check(
        "{ A: { secret_env: NONE } }",
        &[("A", "")],
        Err("env: A: the secret is empty, or has a NUL in it"),
    );
    check("{ A: plain }", &[("A", "typed")], Ok(plain("typed")));
    check("{}", &[("A", "typed")], Ok(plain("typed")));
    check(
        "{}",
        &[("1", "typed")],
        Err("env: `1`: expected a variable's name: letters, digits and `_`, no digit first"),
    );
}

#[test]
fn secrets_are_in_no_debug_output() {
    let text = "jobs: { a: { steps: [x], env: { A: { secret: hunter2 } } } }";
    let file = RunFile::parse(text).unwrap();
    assert!(!format!("{file:?}").contains("hunter2"));
    assert!(!format!("{:?}", run(text).unwrap()).contains("hunter2"));
}

#[test]
fn keys_of_caches_have_hashes_of_files() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("runs")).unwrap();
    fs::write(folder.path().join("lock"), "one").unwrap();
    let key_of = |written: &str| key(written, &folder.path().join("runs"));
    let one = key_of("deps-{hash:../lock}-v1").unwrap();
    let digits = one.strip_prefix("deps-").and_then(|rest| rest.strip_suffix("-v1")).unwrap();
    assert!(digits.len() == HASH_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit()), "{one}");
    assert_eq!(key_of("deps-{hash:../lock}-v1").unwrap(), one);
    fs::write(folder.path().join("lock"), "two").unwrap();
    assert_ne!(key_of("deps-{hash:../lock}-v1").unwrap(), one);
}

#[test]
fn some_jobs_bring_along_what_they_need() {
    let text = "jobs:\n  a: { steps: [x] }\n  b: { steps: [x], needs: [a] }\n  \
                c: { steps: [x], env: { A: { secret_env: NONE } } }\n  d: { steps: [x], needs: [b] }\n";
    let names = |only: &[&str]| {
        let only: Vec<_> = only.iter().map(|name| (*name).to_owned()).collect();
        let env = BTreeMap::new();
        let given = Given { only: &only, ..nothing(Path::new("."), &env) };
        let run = RunFile::parse(text)?.into_run(&given)?;
        Ok(run.jobs.into_iter().map(|job| job.name).collect::<Vec<_>>())
    };
    assert_eq!(names(&["b"]).unwrap(), ["a", "b"]);
    assert_eq!(names(&["d", "a"]).unwrap(), ["a", "b", "d"]);
    let unknown = RunFileError::NoSuchJob { name: "e".to_owned(), known: "a, b, c, d".to_owned() };
    assert_eq!(names(&["e"]), Err(unknown));
    assert!(matches!(names(&[]), Err(RunFileError::Job { job, .. }) if job == "c"));
}

#[test]
fn a_matrix_makes_a_job_of_each_combination() {
    let text = r#"
jobs:
  unit:
    matrix:
      os: [linux, macos]
      rust: [1.10, stable]
      exclude: [{ os: macos, rust: 1.10 }]
      include: [{ os: linux, rust: "night/ly" }]
    requires: ["${{ matrix.os }}", "rust-${{matrix.rust}}"]
    env: { RUST: "${{ matrix.rust }}!" }
    steps: ["cargo +${{ matrix.rust }} test on ${{ matrix.os }}"]
    artifacts: [{ type: log, path_glob: "${{ matrix.os }}/*.log" }]
    caches: [{ key: "a-${{ matrix.os }}", paths: ["target-${{ matrix.os }}"] }]
  all: { needs: [unit], steps: ["echo ${{ $x }}"] }
"#;
    assert_eq!(
        run(text).unwrap_err().to_string(),
        "job `unit-linux-night_ly`: requires: `rust-night/ly`: expected 1 to 128 letters, digits, \
         `-`, `_`, `.` and `:`"
    );
    let text = &text.replace("night/ly", "nightly");
    let only = |only: &[&str]| {
        let only: Vec<_> = only.iter().map(|name| (*name).to_owned()).collect();
        let env = BTreeMap::new();
        let given = Given { only: &only, ..nothing(Path::new("."), &env) };
        RunFile::parse(text).unwrap().into_run(&given).unwrap().jobs
    };
    let jobs = only(&[]);
    let names: Vec<_> = jobs.iter().map(|job| job.name.as_str()).collect();
    let unit = ["unit-linux-1.10", "unit-linux-stable", "unit-macos-stable", "unit-linux-nightly"];
    assert_eq!(names, [&unit[..], &["all"]].concat());
    assert_eq!(jobs[4].needs, unit);
    // Without a matrix, text that looks like a reference belongs to the job.
    assert_eq!(jobs[4].steps, ["echo ${{ $x }}"]);
    let first = &jobs[0];
    assert_eq!(first.requires, ["linux", "rust-1.10"]);
    assert_eq!(first.env["RUST"], plain("1.10!"));
    assert_eq!(first.steps, ["cargo +1.10 test on linux"]);
    assert_eq!(first.artifacts[0].path_glob, "linux/*.log");
    assert_eq!((&*first.caches[0].key, &*first.caches[0].paths[0]), ("a-linux", "target-linux"));
    let names = |jobs: Vec<JobSpec>| jobs.into_iter().map(|job| job.name).collect::<Vec<_>>();
    assert_eq!(names(only(&["unit-macos-stable"])), ["unit-macos-stable"]);
    assert_eq!(names(only(&["unit"])), unit);
    assert_eq!(only(&["all"]).len(), 5);
}

#[test]
fn what_is_no_matrix_is_told() {
    let check = |matrix: &str, more: &str, expected: &str| {
        let text = format!("jobs: {{ a: {{ matrix: {matrix}, steps: [x]{more} }} }}");
        let problem = run(&text).unwrap_err().to_string();
        assert!(problem.starts_with(expected), "{matrix} {more}: {problem}");
    };
    check("[a]", "", "jobs.a.matrix: invalid type: sequence, expected a matrix: lists of values");
    check("{}", "", "jobs.a.matrix: a matrix needs at least one axis");
    check("{ a: [] }", "", "jobs.a.matrix: matrix.a: expected values, each once");
    check("{ a: [x, x] }", "", "jobs.a.matrix: matrix.a: expected values, each once");
    check("{ a: [x], exclude: [{ a: y }] }", "", "jobs.a.matrix: exclude: an entry matches no");
    check("{ a: [x], exclude: [{ a: x }] }", "", "jobs.a.matrix: exclude leaves no combination");
    check("{ a: [x], exclude: [{ b: x }] }", "", "jobs.a.matrix: exclude: the matrix has no `b`");
    check("{ a: [x], include: [{ a: x }] }", "", "jobs.a.matrix: include: the matrix has this");
    check(
        "{ a: [x], include: [{}] }",
        "",
        "jobs.a.matrix: include: an entry has a value for every",
    );
    check("{ a: [b.c, b+c, b_c] }", "", "job `a`: two jobs of the run would be called `a-b_c`");
    let unknown = ", workdir: '${{ matrix.b }}'";
    check("{ a: [x] }", unknown, "job `a-x`: matrix.b: the matrix has a");
    let other = ", image: '${{ env.b }}'";
    check("{ a: [x] }", other, "job `a-x`: `${{ env.b }}`: expected ${{ matrix.AXIS }}");
    let many: Vec<_> = (0..32).map(|n| n.to_string()).collect();
    let many = many.join(", ");
    check(
        &format!("{{ a: [{many}], b: [{many}] }}"),
        "",
        "jobs.a.matrix: the matrix has more than",
    );
    let alone = "jobs: { a: { requires: ['${{ matrix.b }}'], steps: [x] } }";
    let problem = run(alone).unwrap_err().to_string();
    assert_eq!(problem, "job `a`: requires: matrix.b: the job has no matrix");
}

#[test]
fn references_to_needed_jobs_are_checked() {
    let read = |value: &str, more: &str| {
        let text = format!(
            "env: {{ E: 'v${{{{ needs.b.result }}}}' }}\njobs:\n  b: {{ steps: [x], outputs: [v] }}\n  \
             m: {{ steps: [x], matrix: {{ os: [a, b] }}, outputs: [v] }}\n  \
             a: {{ needs: [b, m], steps: [x], env: {{ V: '{value}' }}{more} }}"
        );
        run(&text).map(|run| run.jobs.last().unwrap().env.clone())
    };
    let from = |text: &str| EnvValue::FromNeeds { from_needs: text.to_owned() };
    for value in ["v${{ needs.b.outputs.v }}", "${{needs.b.result}}", "${{ needs.m-a.outputs.v }}"]
    {
        let env = read(value, "").unwrap();
        assert_eq!(env["V"], from(value));
        assert_eq!(env["E"], plain("v${{ needs.b.result }}"), "of every job: no job needs it");
    }
    assert_eq!(read("${{ other }}", "").unwrap()["V"], plain("${{ other }}"));
    // A reference within another is not valid.
    let both = "${{ needs.m-${{ matrix.os }}.result }} ${{ needs.b.result }}";
    let matrix = ", matrix: { os: [b] }";
    let filled = "${{ needs.m-b.result }} ${{ needs.b.result }}";
    let check = |value: &str, more: &str, expected: &str| {
        let problem = read(value, more).unwrap_err().to_string();
        assert_eq!(problem, expected, "{value}");
    };
    assert_eq!(read(filled, matrix).unwrap()["V"], from(filled));
    check(
        both,
        "",
        "job `a`: env: V: `${{ needs.m-${{ matrix.os }}.result }} $…`: expected \
         ${{ needs.JOB.outputs.NAME }} or ${{ needs.JOB.result }}",
    );
    check("${{ needs.c.result }}", "", "job `a`: env: V: a does not need a job `c`");
    check("${{ needs.m.result }}", "", "job `a`: env: V: a does not need a job `m`");
    check(
        "${{ needs.b.outputs.w }}",
        "",
        "job `a`: env: V: `w` is not among the outputs of job `b`",
    );
    check(
        &"${{ needs.b.result }}".repeat(65),
        "",
        "job `a`: env: 65 references to needed jobs: 64 at most",
    );
}

#[test]
fn groups_are_names_or_mappings() {
    let read = |group: &str| {
        let text = format!(
            "jobs: {{ a: {{ matrix: {{ os: [x, y] }}, steps: [x], concurrency: {group} }} }}"
        );
        let jobs = run(&text).map_err(|error| error.to_string())?.jobs;
        Ok(jobs.into_iter().map(|job| job.concurrency.unwrap().group).collect::<Vec<_>>())
    };
    assert_eq!(read("all").unwrap(), ["all", "all"]);
    assert_eq!(read("'on ${{ matrix.os }}'").unwrap(), ["on x", "on y"]);
    let wrong = [
        ("''", "``: expected the name of a group: 1 to 128 bytes on a line"),
        ("[a]", "expected a group's name, or {group: NAME, cancel_in_progress: true or false}"),
        ("{ cancel_in_progress: true }", "missing field `group`"),
        ("{ group: a, cancel: true }", "unknown field `cancel`, expected `group` or `cancel_in"),
        ("{ group: a, group: b }", "a field appears twice"),
        ("{ group: a, cancel_in_progress: 1 }", "expected a boolean"),
    ];
    for (wrong, expected) in wrong {
        let problem: String = read(wrong).unwrap_err();
        assert!(problem.contains(expected), "{wrong}: {problem}");
    }
    assert_eq!(
        read("'${{ matrix.b }}'").unwrap_err(),
        "job `a-x`: concurrency: matrix.b: the matrix has os"
    );
}

/// Every run file of the examples is valid.
#[test]
fn runs_of_the_examples_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/leases");
    let environment = |name: &str| (name == "GREETING").then(|| "hello".to_owned());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let env = BTreeMap::new();
            let given = Given { environment: &environment, ..nothing(&folder, &env) };
            let file = RunFile::parse(&fs::read_to_string(&path).unwrap()).unwrap();
            let run = file.into_run(&given).unwrap();
            assert_eq!(run.name.as_deref(), path.file_stem().unwrap().to_str());
            names.extend(run.name);
        }
    }
    names.sort();
    assert_eq!(names, ["hello", "own-tests", "pipeline"]);
}

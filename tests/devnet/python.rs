//! `examples/runner-python`, in a separate process, on a running devnet. It implements
//! `docs/runner-protocol.md` and shares no code with the devnet.
//!
//! `COWBOYCTL_PYTHON` (default: `python3`) names a Python 3.11 with
//! `examples/runner-python/requirements.txt`. Without one the test is skipped, and standard error
//! says so.

use crate::{
    support::{Home, PATIENCE, list, wait_until},
    timers::{number, text},
    watch::Watch,
};
use cowboy_devnet::{
    client::Client,
    home,
    types::{Bytes, ChainIdText, HashText, Text, TransactionRequest},
};
use cowboy_engine::{
    chain::{Payload, Transaction, transaction::RegisterRunner},
    primitives::{SecretKey, Wei},
    registry::{Capabilities, JobKind},
    wire::{Body, JobResult},
};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use std::{
    env, fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

const RUNNER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/runner-python");

/// Bytes in the API's format, 0x and hex.
fn hex(bytes: &[u8]) -> String {
    Text(Bytes(bytes.to_vec())).to_string()
}

/// A Python that can run the runner.
fn interpreter() -> Option<String> {
    let python = env::var("COWBOYCTL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut command = Command::new(&python);
    command.args(["-c", "import aioquic, cbor2"]).stdin(Stdio::null());
    let works = command.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    works.then_some(python)
}

/// The runner's process and files; dropping it ends the process.
struct Python {
    child: Child,
    folder: TempDir,
}

impl Python {
    /// Starts a runner that trusts the validators with these consensus keys; without any, the API.
    fn start(python: &str, api: &str, key: &SecretKey, validators: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key_file = folder.path().join("key");
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&key_file).unwrap();
        writeln!(file, "{}", hex(&key.to_bytes()).trim_start_matches("0x")).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let child = Command::new(python)
            // `-B` because nothing compiled may be left in the repository.
            .args(["-B", RUNNER, "--api", api, "--key-file"])
            .arg(&key_file)
            .args(validators.iter().flat_map(|key| ["--validator", key]))
            // The parent of jobs' folders.
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Sends SIGTERM, waits until it has ended, and returns its exit code.
    fn terminate(&mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let mut code = None;
        wait_until("the runner has ended", || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        code.and_then(|status| status.code())
    }
}

#[expect(clippy::print_stderr, reason = "a test that fails shows what the runner said")]
impl Drop for Python {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the runner's log\n{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Registers the account of `key`, which has the money, as a runner of commands.
fn register(devnet: &home::DevnetHome, key: &SecretKey) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::of_devnet(devnet).unwrap().with_timeout(PATIENCE);
        let parameters = client.parameters().await.unwrap();
        let register = RegisterRunner {
            pubkey: key.public_key(),
            stake: Wei::cby(10_000),
            capabilities: Capabilities::of(vec![JobKind::Custom], 2),
            price_per_second: Wei::new(1_000_000),
        };
        let signed = Transaction::with_limits(
            parameters.chain_id.0.0,
            client.account(&key.address().to_string()).await.unwrap().next_nonce,
            *parameters.cycle_basefee,
            *parameters.cell_basefee,
            Payload::RegisterRunner(register),
        )
        .sign(key);
        let request = TransactionRequest { transaction: Text(Bytes(signed.to_bytes())) };
        client.submit(&request).await.unwrap();
    });
}

/// The signature of the result in a block.
fn result_signature(home: &Home, height: u64) -> String {
    let block = home.json(&["chain", "block", &height.to_string()]);
    let mut transactions = list(&block["transactions"]).iter();
    let brought = transactions.find(|brought| brought["kind"] == "job_result_submit").unwrap();
    let transaction = home.json(&["chain", "tx", text(&brought["hash"])]);
    text(&transaction["payload"]["runner_signature"]).to_owned()
}

/// Whether all three validators of the runner's subset are connected to it and count it.
fn everywhere(home: &Home, runner: &str) -> bool {
    let shown = home.json(&["runner", "show", runner]);
    list(&shown["connections"]).iter().all(|link| link["locally_present"] == true)
}

#[test]
fn a_runner_in_python_is_drawn_works_and_says_goodbye() {
    let Some(python) = interpreter() else {
        eprintln!("skipped: no Python with aioquic and cbor2; see COWBOYCTL_PYTHON");
        return;
    };
    let home = Home::new();
    let up = home.up(&["--runners", "0", "--wait", "2"]);
    let key = SecretKey::derive(b"a runner of another make", "python");
    let runner = key.address().to_string();
    home.json(&["account", "fund", &runner, "10100cby"]);
    register(&home::Home::at(home.path("")).devnet(&"local".parse().unwrap()), &key);
    wait_until("it is registered", || home.run(&["runner", "show", &runner]).code == 0);

    let mut watch = Watch::start(&home, &["presence", "watch"]);
    let mut process = Python::start(&python, text(&up["rpc_url"]), &key, &[]);
    watch.until_line("line with the runner", |line| line["present"] == 1);
    wait_until("all of its subset see it", || everywhere(&home, &runner));

    does_a_job_once(&home, &process, text(&up["chain_id"]), &key);
    says_that_it_cannot_do_a_job(&home, &runner);
    stops_a_job_that_is_cancelled(&home, &process.path("pid"));
    comes_back_to_a_validator_that_was_stopped(&home, &runner);

    assert_eq!(process.terminate(), Some(0), "{}", process.log());
    let files = fs::read_dir(process.folder.path()).unwrap().flatten();
    let names: Vec<_> = files.map(|file| file.file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.starts_with("job-")), "folders of jobs: {names:?}");
    // Each validator got a goodbye, so none has to wait three blocks.
    let told = format!("runner={runner} end=closed by the peer: shutting_down");
    wait_until("it said goodbye to all three", || {
        let log = fs::read_to_string(home.path("local/log/devnet.log")).unwrap();
        log.matches(&told).count() == 3
    });
    let shown = home.json(&["runner", "show", &runner]);
    assert!(list(&shown["connections"]).iter().all(|link| link["connected"] == false), "{shown}");
    let gone = |line: &Value| list(&line["vanished"]).iter().any(|name| *name == *runner);
    watch.until_line("line without the runner", gone);
    watch.interrupt();
}

#[test]
fn a_runner_in_python_follows_validators_by_proofs_and_believes_no_liar() {
    let Some(python) = interpreter() else {
        eprintln!("skipped: no Python with aioquic and cbor2; see COWBOYCTL_PYTHON");
        return;
    };
    let home = Home::new();
    let file = home.path("turn.yaml");
    fs::write(&file, "name: local\nrunners: 0\nchain:\n  epoch_blocks: 8\n").unwrap();
    let up = home.up(&["-f", file.to_str().unwrap(), "--wait", "2"]);
    let key = SecretKey::derive(b"a runner of another make", "python");
    let runner = key.address().to_string();
    home.json(&["account", "fund", &runner, "10100cby"]);
    register(&home.devnet("local"), &key);
    wait_until("it is registered", || home.run(&["runner", "show", &runner]).code == 0);
    let genesis = home.json(&["validator", "ls"]);
    let trusted: Vec<_> = list(&genesis).iter().map(|v| text(&v["consensus_key"])).collect();

    // Only one of the trusted validators has signed, but two are required.
    let others: Vec<_> = (1..4).map(|n| format!("0x{}", format!("{n:02}").repeat(32))).collect();
    let mut strangers: Vec<&str> = others.iter().map(String::as_str).collect();
    strangers.push(trusted[0]);
    let mut refused = Python::start(&python, text(&up["rpc_url"]), &key, &strangers);
    let mut code = None;
    wait_until("it has ended", || {
        code = refused.child.try_wait().unwrap();
        code.is_some()
    });
    assert_eq!(code.and_then(|status| status.code()), Some(1), "{}", refused.log());
    assert!(refused.log().contains("would vouch for others"), "{}", refused.log());

    let mut process = Python::start(&python, text(&up["rpc_url"]), &key, &trusted);
    wait_until("all of its subset see it", || everywhere(&home, &runner));
    for n in 0..4 {
        let joined = home.json(&["validator", "add", &format!("fresh-{n}")]);
        home.wait_height(number(&joined["from"]) + 1);
        home.json(&["validator", "remove", &format!("validator-{n}")]);
    }
    home.json(&["chain", "wait", "+40"]);
    wait_until("all of its new subset see it", || everywhere(&home, &runner));
    let job = home.json(&["job", "submit", "custom", "--wait", "--", "echo", "all others"]);
    assert_eq!(job["result_text"], "all others\n", "{job}\n{}", process.log());
    assert_eq!(process.terminate(), Some(0), "{}", process.log());
    assert!(!process.log().contains("is not proved"), "{}", process.log());
}

/// All three validators assign the job; the chain has the runner's bytes and signature.
fn does_a_job_once(home: &Home, process: &Python, chain_id: &str, key: &SecretKey) {
    let runs = process.path("runs");
    let script = r#"echo run >> "$RUNS"; printf 'h\303\251llo\0'; cat"#;
    let stdin = process.path("stdin");
    fs::write(&stdin, "stdin\n").unwrap();
    let env = format!("RUNS={}", runs.display());
    let args = ["job", "submit", "custom", "--wait", "--env", &env, "--stdin"];
    let command = [stdin.to_str().unwrap(), "--", "sh", "-c", script];
    let job = home.json(&[&args[..], &command[..]].concat());
    assert_eq!(job["status"], "Verified", "{job}\n{}", process.log());
    assert_eq!(job["runner"], *key.address().to_string());
    let id = text(&job["job_id"]);
    assert_eq!(home.run(&["job", "result", id]).stdout, "héllo\0stdin\n");
    assert_eq!(fs::read_to_string(runs).unwrap(), "run\n");

    let (chain_id, job_id): (ChainIdText, HashText) =
        (chain_id.parse().unwrap(), id.parse().unwrap());
    let body = Body::new("héllo\0stdin\n".into()).unwrap();
    // Signatures are deterministic, so this is the runner's.
    let result = JobResult::signed(chain_id.0.0, key, job_id.0, body);
    let expected = hex(result.runner_signed.as_bytes());
    assert_eq!(result_signature(home, number(&job["final_at"])), expected);
}

/// No other runner could do the job, so it ends in time, with the runner's reason on the chain.
fn says_that_it_cannot_do_a_job(home: &Home, runner: &str) {
    let args = ["job", "submit", "custom", "--wait", "--timeout-blocks", "24", "--"];
    let command = ["sh", "-c", "echo out of ink >&2; exit 3"];
    let refused = home.fails(1, &[&args[..], &command].concat());
    assert!(refused.contains(runner) && refused.contains("exit"), "{refused}");
    let reputation = &home.json(&["runner", "show", runner])["reputation"];
    assert_eq!(*reputation, 100, "who says so loses nothing");
}

/// The deadline passes, validators cancel the job, and none of its processes is left.
fn stops_a_job_that_is_cancelled(home: &Home, pid_file: &Path) {
    let script = format!("echo $$ > {}; sleep 600 & sleep 600", pid_file.display());
    let args = ["job", "submit", "custom", "--wait", "--timeout-blocks", "50", "--", "sh", "-c"];
    assert_eq!(home.run(&[&args[..], &[&script]].concat()).code, 1);
    let pid = fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
    let pid = Pid::from_raw(pid).unwrap();
    wait_until("the job's process is gone", || test_kill_process(pid).is_err());
}

fn comes_back_to_a_validator_that_was_stopped(home: &Home, runner: &str) {
    let shown = home.json(&["runner", "show", runner]);
    let validator = text(&shown["subset"][0]);
    home.json(&["validator", "stop", validator]);
    wait_until("the connection is gone", || !everywhere(home, runner));
    home.json(&["validator", "start", validator]);
    wait_until("it is connected again", || everywhere(home, runner));
}

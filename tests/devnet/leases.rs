//! Jobs by lease, with real processes: a crowd of runners that are killed at random, a server that
//! is killed repeatedly, and a job of the chain that is delivered by lease.
//!
//! ```text
//! COWBOYCTL_LEASE_RUNNERS=200 COWBOYCTL_LEASE_JOBS=5000 COWBOYCTL_LEASE_KILLS=10 \
//!     cargo nextest run --locked -p cowboyctl --test devnet --no-capture leases::
//! ```
//!
//! prints the results; the defaults are smaller.

use crate::{
    runners::until_present,
    support::{Home, PATIENCE, wait_until},
};
use cowboy_lease::{
    client::{Client, Tls},
    messages::{JobSpec, NewRun, Retry},
};
use rusqlite::{Connection, OpenFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::{Value, json};
use std::{
    env, fs,
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

/// A number from the environment.
fn asked(name: &str, default: usize) -> usize {
    env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// A process that is killed on drop.
struct Process(Child);

impl Process {
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The next pseudo-random number below `n`.
fn draw(state: &mut u64, n: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state % n as u64) as usize
}

struct Crowd {
    home: Home,
    port: u16,
    folder: PathBuf,
}

impl Crowd {
    fn new() -> Self {
        let home = Home::new();
        // This port was free a moment ago; the server binds it at every start.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = home.path("server");
        Self { home, port, folder }
    }

    fn serve(&self) -> Process {
        let (port, log) = (self.port.to_string(), self.home.path("server.log"));
        let log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let child = self
            .home
            .command(&["lease", "serve", "--port", &port, "--dir"])
            .arg(&self.folder)
            .args(["--ttl", "6s", "--heartbeat", "2s", "--ack-timeout", "6s"])
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let started = Process(child);
        wait_until("the lease server answers", || self.client().is_some());
        started
    }

    /// A client with the operator's token, once the server answers.
    fn client(&self) -> Option<Client> {
        TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let token = fs::read_to_string(self.folder.join("token")).ok()?;
        let url = format!("http://127.0.0.1:{}", self.port);
        Client::new(&url, token.trim(), &Tls::default()).ok()
    }

    /// Sends a runner's message on a new connection, and returns the answer.
    fn post(&self, path: &str, token: &str, body: &Value) -> io::Result<Value> {
        let body = body.to_string();
        let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
        connection.set_read_timeout(Some(PATIENCE))?;
        write!(
            connection,
            "POST /api/v1/internal/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        serde_json::from_str(body).map_err(|error| io::Error::other(format!("{error}: {answer}")))
    }

    fn runner(&self, name: &str, token: &Path) -> Process {
        let url = format!("http://127.0.0.1:{}", self.port);
        let log = self.home.path("runners.log");
        let log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command = self.home.command(&["lease", "runner", "--server", &url]);
        command.args(["--name", name, "--token-file"]).arg(token).arg("--dir");
        command.arg(self.home.path("work").join(name));
        Process(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }
}

/// The first file below `folder` that contains a lease's id.
fn tells_a_lease(folder: &Path) -> Option<PathBuf> {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if let Some(found) = tells_a_lease(&path) {
                return Some(found);
            }
            continue;
        }
        // The file may have been removed in the meantime.
        let bytes = fs::read(&path).unwrap_or_default();
        let secret = |tag: &[u8]| {
            let mut places = bytes.windows(tag.len() + 32);
            places.any(|part| {
                part.starts_with(tag) && part[tag.len()..].iter().all(u8::is_ascii_hexdigit)
            })
        };
        if secret(b"lease_") {
            return Some(path);
        }
    }
    None
}

#[test]
fn every_job_is_finalized_once_despite_all_kills() {
    let runners = asked("COWBOYCTL_LEASE_RUNNERS", 12);
    let jobs = asked("COWBOYCTL_LEASE_JOBS", 200);
    let kills = asked("COWBOYCTL_LEASE_KILLS", 3);
    let mut random = asked("COWBOYCTL_LEASE_SEED", 1) as u64 + 0x9e37_79b9;
    let crowd = Crowd::new();
    let mut server = crowd.serve();
    let runtime = Runtime::new().unwrap();
    let client = crowd.client().expect("it answered a moment ago");

    let names: Vec<_> = (0..runners).map(|n| format!("runner-{n}")).collect();
    let mut tokens = Vec::new();
    for name in &names {
        let made = runtime.block_on(client.issue_token(name, false)).unwrap();
        let file = crowd.home.path(&format!("{name}.token"));
        fs::write(&file, made.token).unwrap();
        tokens.push(file);
    }
    let mut left = jobs;
    while left > 0 {
        let some = left.min(1_000);
        left -= some;
        let job = |n| JobSpec {
            name: format!("job-{n}"),
            steps: vec!["echo $COWBOY_JOB_NAME".to_owned()],
            retry: Some(Retry { on: None, max_attempts: Some(100), backoff_seconds: None }),
            ..JobSpec::default()
        };
        let run = NewRun { jobs: (0..some).map(job).collect(), ..NewRun::default() };
        assert_eq!(runtime.block_on(client.submit(&run)).unwrap().jobs.len(), some);
    }

    let begun = Instant::now();
    let start = |n: usize| crowd.runner(&names[n], &tokens[n]);
    let mut crew: Vec<_> = (0..runners).map(start).collect();
    let (mut killed, mut restarts) = (0, 0);
    let mut waited = Instant::now();
    let mut last = 0;
    loop {
        let ended = ended(&crowd.folder);
        if ended != last {
            (waited, last) = (Instant::now(), ended);
        }
        assert!(waited.elapsed() < 2 * PATIENCE, "{ended} of {jobs} ended, and no more");
        if ended == jobs && restarts == kills {
            break;
        }
        // The server is killed after each part of the work, runners all the time.
        if restarts < kills && ended * (kills + 1) >= jobs * (restarts + 1) {
            let pid = Pid::from_child(&server.0);
            kill_process(pid, Signal::KILL).unwrap();
            server.kill();
            server = crowd.serve();
            restarts += 1;
        }
        if ended < jobs {
            let victim = draw(&mut random, runners);
            crew[victim].kill();
            crew[victim] = start(victim);
            killed += 1;
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
    println!(
        "{jobs} jobs on {runners} runners in {:.1?}: {killed} runners and {restarts} servers killed",
        begun.elapsed()
    );
    crew.clear();
    server.kill();

    let database = open(&crowd.folder);
    let count = |sql: &str| -> usize { database.query_row(sql, [], |row| row.get(0)).unwrap() };
    let terminal = "('SUCCEEDED', 'FAILED', 'CANCELED', 'TIMED_OUT')";
    assert_eq!(count("SELECT count(*) FROM job"), jobs);
    assert_eq!(count("SELECT count(*) FROM job WHERE state = 'SUCCEEDED'"), jobs);
    assert_eq!(count(&format!("SELECT count(*) FROM event WHERE state IN {terminal}")), jobs);
    let once = "SELECT count(DISTINCT job) FROM event WHERE state = 'SUCCEEDED'";
    assert_eq!(count(once), jobs);
    assert_eq!(count("SELECT count(*) FROM attempt WHERE lease_state = 'COMPLETED'"), jobs);
    println!("{} attempts", count("SELECT count(*) FROM attempt"));
    assert_eq!(tells_a_lease(&crowd.home.path("")), None);
}

fn open(folder: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = Connection::open_with_flags(folder.join("lease.db"), flags).unwrap();
    database.busy_timeout(PATIENCE).unwrap();
    database
}

/// The number of ended jobs in the database.
fn ended(folder: &Path) -> usize {
    let sql = "SELECT count(*) FROM job WHERE ended_at IS NOT NULL";
    open(folder).query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_job_of_the_chain_is_done_by_a_runner_with_a_lease() {
    let home = Home::new();
    home.up(&["--validators", "4", "--runners", "2"]);
    let submit = |command: &[&str]| {
        let args = ["job", "submit", "custom", "--delivery", "lease", "--wait", "--timeout", "60s"];
        home.run(&[&["--output", "json"], &args[..], &["--"], command].concat())
    };
    let mut runner = Process(
        home.command(&["lease", "runner", "--name", "pool"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let done = submit(&["sh", "-c", "printf 'by %s' \"$COWBOY_JOB_NAME\""]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.json()["result"], "0x627920636f6d6d616e64", "`by command`, in hex");
    let leased = home.json(&["lease", "ls"]);
    assert_eq!(leased[0]["state"], "SUCCEEDED", "{leased}");
    assert_eq!(leased[0]["runner"], "pool", "{leased}");

    let failed = submit(&["sh", "-c", "echo no luck >&2; exit 3"]);
    assert_ne!(failed.code, 0, "{failed:?}");
    assert!(failed.stderr.contains("exit code 3"), "{failed:?}");
    assert!(kill_process(Pid::from_child(&runner.0), Signal::TERM).is_ok());
    runner.kill();
    home.run(&["devnet", "down"]);
}

#[test]
fn a_runner_in_a_process_of_its_own_takes_jobs_that_are_delivered_by_lease() {
    let home = Home::new();
    home.up(&["--runners", "0", "--wait", "2"]);
    let key = home.path("outside.key").to_str().unwrap().to_owned();
    let register = ["runner", "register", "--key-file", &key, "--kinds", "custom"];
    assert_eq!(home.run(&register).code, 0);
    home.json(&["runner", "start", "--key-file", &key, "--detach"]);
    until_present(&home, "outside");
    let mut by_lease = Process(
        home.command(&["lease", "runner", "--name", "pool"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let args = ["job", "submit", "custom", "--delivery", "lease", "--wait", "--timeout", "60s"];
    let done = home.json(&[&args[..], &["--", "printf", "leased"]].concat());
    assert_eq!(done["result"], "0x6c6561736564", "`leased`, in hex: {done}");
    assert_eq!(home.json(&["lease", "ls"])[0]["runner"], "pool");
    by_lease.kill();
    home.json(&["runner", "stop", "outside"]);
}

/// Number of idle connections.
const IDLE: usize = 10_000;

#[test]
fn neither_idle_connections_nor_slow_ones_stop_heartbeats() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let idle = IDLE.min(usize::try_from(most).unwrap_or(IDLE).saturating_sub(500));
    let crowd = Crowd::new();
    let mut server = crowd.serve();
    let runtime = Runtime::new().unwrap();
    let client = crowd.client().expect("it answered a moment ago");
    let token = runtime.block_on(client.issue_token("r", false)).unwrap().token;
    let steps = vec!["true".to_owned()];
    let job = JobSpec { name: "job".to_owned(), steps, ..JobSpec::default() };
    runtime.block_on(client.submit(&NewRun { jobs: vec![job], ..NewRun::default() })).unwrap();
    let send = |path: &str, body: Value| {
        let answer = crowd.post(path, &token, &body);
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let granted = send("lease", json!({"runner_id": "r"}));
    let (lease, job) = (granted["lease_id"].clone(), granted["job_id"].clone());
    send("ack-lease", json!({"runner_id": "r", "lease_id": lease, "job_id": job}));

    let mut connections = Vec::new();
    let heads: [&[u8]; 3] = [
        b"",
        b"POST /api/v1/internal/heartbeat HTTP/1.1\r\nHost: loc",
        b"POST /api/v1/internal/heartbeat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    ];
    for n in 0..idle {
        let mut connection = TcpStream::connect(("127.0.0.1", crowd.port)).unwrap();
        // The server may have closed the connection already to make room.
        let _ = connection.write_all(heads[n % heads.len()]);
        connections.push(connection);
        if n % 100 == 0 || n + 1 == idle {
            let ack = send("heartbeat", json!({"runner_id": "r", "lease_id": lease}));
            assert_eq!(ack["extend_lease"], true, "after {n} connections: {ack}");
        }
    }
    let complete = json!({"runner_id": "r", "lease_id": lease, "status": "SUCCEEDED"});
    assert_eq!(send("complete", complete)["accepted"], true);
    drop(connections);
    server.kill();
}

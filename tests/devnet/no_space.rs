//! Full disks under a lease server and under a whole devnet: the answers during that time, and
//! recovery once there is space. Also lease servers whose owner panics.

use crate::{
    space::{fill, in_a_namespace, mount, states},
    speculation,
    support::{Home, PATIENCE, list, wait_until},
    timers::{number, text},
};
use cowboy_lease::{
    client::{Client, ClientError, Tls},
    messages::{JobSpec, NewRun, PageQuery},
};
use rusqlite::Connection;
use rustix::process::test_kill_process;
use serde_json::{Value, json};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Stdio},
};
use tokio::runtime::Runtime;

/// The allocation unit of a file system in memory, in bytes.
const PAGE: u64 = 4_096;

/// A trigger that makes every submitted run fail.
const REFUSE: &str = "CREATE TRIGGER refuse BEFORE INSERT ON run
    BEGIN SELECT RAISE(ABORT, 'refused by a test'); END";

/// A process that is killed on drop.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// A separate lease server.
struct Server {
    process: Process,
    address: String,
    folder: PathBuf,
    runtime: Runtime,
}

impl Server {
    fn start(home: &Home, folder: PathBuf, stderr: impl Into<Stdio>) -> Self {
        // This port was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = home.command(&["lease", "serve", "--port", &port.to_string(), "--dir"]);
        command.arg(&folder).stdout(Stdio::null()).stderr(stderr);
        let process = Process(command.spawn().unwrap());
        let address = format!("127.0.0.1:{port}");
        wait_until("the lease server listens", || TcpStream::connect(&address).is_ok());
        // It accepts connections before it has started.
        assert_eq!(health(&address), healthy());
        Self { process, address, folder, runtime: Runtime::new().unwrap() }
    }

    fn client(&self) -> Client {
        let token = fs::read_to_string(self.folder.join("token")).unwrap();
        let url = format!("http://{}", self.address);
        Client::new(&url, token.trim(), &Tls::default()).unwrap()
    }

    /// Submits a run of one job.
    fn submit(&self) -> Result<(), ClientError> {
        let (name, steps) = ("job".to_owned(), vec!["true".to_owned()]);
        let job = JobSpec { name, steps, ..JobSpec::default() };
        let run = NewRun { jobs: vec![job], ..NewRun::default() };
        self.runtime.block_on(self.client().submit(&run)).map(drop)
    }

    /// Submits a run, which is refused because it cannot be written.
    #[track_caller]
    fn fails(&self) {
        match self.submit() {
            Err(ClientError::Refused { status, .. }) if status.as_u16() == 500 => {}
            other => panic!("{other:?}"),
        }
    }

    /// Sends a runner's message and returns the answer.
    fn send(&self, path: &str, token: &str, body: &Value) -> Value {
        let path = format!("/api/v1/internal/{path}");
        request(&self.address, "POST", &path, token, &body.to_string()).1
    }

    fn database(&self) -> Connection {
        open(&self.folder.join("lease.db"))
    }
}

fn open(database: &Path) -> Connection {
    let connection = Connection::open(database).unwrap();
    connection.busy_timeout(PATIENCE).unwrap();
    connection
}

/// The status and the JSON of an answer.
fn request(address: &str, method: &str, path: &str, token: &str, body: &str) -> (u16, Value) {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        connection,
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
}

fn health(address: &str) -> (u16, Value) {
    request(address, "GET", "/api/v1/health", "", "")
}

fn healthy() -> (u16, Value) {
    (200, json!({"ok": true}))
}

fn unhealthy(reason: &str) -> (u16, Value) {
    (503, json!({"ok": false, "reason": reason}))
}

fn append(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).unwrap()
}

#[test]
fn a_lease_server_on_a_full_disk_goes_on_once_there_is_space() {
    let test = "no_space::a_lease_server_on_a_full_disk_goes_on_once_there_is_space";
    let Some(disk) = in_a_namespace(test) else { return };
    mount(&disk, 8);
    let (home, log) = (Home::new(), disk.join("server.log"));
    let server = Server::start(&home, disk.join("server"), append(&log));
    server.submit().unwrap();
    let token = server.runtime.block_on(server.client().issue_token("r", false)).unwrap().token;
    let granted = server.send("lease", &token, &json!({"runner_id": "r"}));
    let (lease, job) = (&granted["lease_id"], &granted["job_id"]);
    let ack = json!({"runner_id": "r", "lease_id": lease, "job_id": job});
    assert_eq!(server.send("ack-lease", &token, &ack)["accepted"], true);
    let beat = json!({"runner_id": "r", "lease_id": lease});

    // The log's next line needs a new page.
    let length = fs::metadata(&log).unwrap().len();
    append(&log).write_all(&vec![b'\n'; (PAGE - length % PAGE) as usize]).unwrap();
    let filled = fill(&disk, 0);
    // The allocated pages may have room for some runs.
    wait_until("no run can be written, and it says so", || {
        server.submit().is_err() && health(&server.address) == unhealthy("NO_SPACE")
    });
    for _ in 0..20 {
        server.fails();
    }
    let runs = server.runtime.block_on(server.client().runs(&PageQuery::default())).unwrap();
    assert!(!runs.is_empty(), "what was written is read");
    // There may be room for a change this small.
    let answer = server.send("heartbeat", &token, &beat);
    let failed = answer["error"]["code"] == "INTERNAL";
    assert!(failed || answer["extend_lease"] == true, "{answer}");

    fs::remove_file(filled).unwrap();
    wait_until("changes are accepted", || health(&server.address) == healthy());
    server.submit().unwrap();
    assert_eq!(server.send("heartbeat", &token, &beat)["extend_lease"], true);
    let complete = json!({"runner_id": "r", "lease_id": lease, "status": "SUCCEEDED"});
    assert_eq!(server.send("complete", &token, &complete)["accepted"], true);
    // With its next line the log reports the number of lost lines.
    server.database().execute_batch(REFUSE).unwrap();
    server.fails();
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains("of this log are lost"), "{text}");
}

#[test]
fn a_lease_server_goes_on_when_nothing_reads_its_log() {
    let home = Home::new();
    let (reader, writer) = io::pipe().unwrap();
    let server = Server::start(&home, home.path("server"), writer);
    drop(reader);
    let database = server.database();
    for _ in 0..3 {
        database.execute_batch(REFUSE).unwrap();
        wait_until("it fails, and says so", || {
            server.fails();
            health(&server.address) == unhealthy("WRITES_FAIL")
        });
        database.execute_batch("DROP TRIGGER refuse").unwrap();
        server.submit().unwrap();
        assert_eq!(health(&server.address), healthy());
    }
}

/// Makes the owner of leases panic at the next submitted run: the run fails, the database is read
/// again, and its highest number has no successor.
fn break_owner(database: &Connection) {
    let run = format!("INSERT INTO run (seq, id, created_at) VALUES ({}, 'none', 0)", i64::MAX);
    database.execute_batch(&format!("{run}; {REFUSE}")).unwrap();
}

#[test]
fn a_lease_server_whose_owner_panics_ends_with_a_last_word() {
    let home = Home::new();
    let log = home.path("server.log");
    let mut server = Server::start(&home, home.path("server"), append(&log));
    break_owner(&server.database());
    assert!(server.submit().is_err());
    let mut ended = None;
    wait_until("the process has ended", || {
        ended = server.process.0.try_wait().unwrap();
        ended.is_some()
    });
    let text = fs::read_to_string(&log).unwrap();
    assert_eq!(ended.unwrap().code(), Some(1), "{text}");
    let told = "error: the lease server: the owner of the leases ended by itself: a panic: attempt";
    assert!(text.contains(told), "{text}");
}

#[test]
fn a_devnet_whose_leases_have_no_owner_ends_with_a_last_word_and_can_go_on() {
    let home = Home::new();
    home.up(&["--runners", "0", "--wait", "2"]);
    let (pid, at) = (home.pid("local"), home.height());
    let path = home.path("local/lease/lease.db");
    break_owner(&open(&path));
    fs::write(home.path("run.yaml"), "jobs:\n  j: { steps: ['true'] }\n").unwrap();
    let run = home.path("run.yaml");
    assert_ne!(home.run(&["lease", "submit", &run.to_string_lossy()]).code, 0);
    wait_until("the process has ended", || test_kill_process(pid).is_err());
    let text = fs::read_to_string(home.path("local/log/devnet.log")).unwrap();
    let told = "error: the lease server: the owner of the leases ended by itself: a panic: attempt";
    assert!(text.contains(told), "{text}");
    open(&path).execute_batch("DROP TRIGGER refuse; DELETE FROM run WHERE id = 'none'").unwrap();
    home.up(&["--runners", "0"]);
    home.wait_height(at + 3);
    home.json(&["lease", "submit", &run.to_string_lossy()]);
}

#[test]
fn everything_of_a_devnet_goes_on_once_its_full_disk_has_space() {
    let test = "no_space::everything_of_a_devnet_goes_on_once_its_full_disk_has_space";
    let Some(disk) = in_a_namespace(test) else { return };
    mount(&disk, 200);
    let home = Home::within(&disk);
    home.up_with(&json!({ "name": "local", "speculation": { "enabled": true } }));
    let (run, pipeline) = (home.path("run.yaml"), home.path("pipeline.json"));
    fs::write(&run, "jobs:\n  j: { steps: ['true'] }\n").unwrap();
    let tasks = json!({ "name": "test", "tasks": speculation::five() });
    fs::write(&pipeline, tasks.to_string()).unwrap();
    let [run, pipeline] = [&run, &pipeline].map(|path| path.to_str().unwrap());
    let record = fs::read_to_string(home.path("local/devnet.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    let leases = text(&record["lease_url"]).trim_start_matches("http://").to_owned();
    let mut command = home.command(&["lease", "runner", "--name", "pool"]);
    command.stdout(Stdio::null()).stderr(append(&home.path("runner.log")));
    let _runner = Process(command.spawn().unwrap());
    wait_until("the runner asks for work", || home.json(&["lease", "runners"])[0]["waits"] == true);

    let filled = fill(&disk, 0);
    let all = |wanted: &str| states(&home).iter().all(|(state, _)| state == wanted);
    wait_until("all validators are paused", || all("paused"));
    assert!(states(&home).iter().all(|(_, reason)| !reason.is_empty()), "{:?}", states(&home));
    let at = home.height();
    home.json(&["chain", "block", "2"]);
    let error = home.fails(1, &["account", "fund", "dev-0", "1cby"]);
    assert!(
        error.contains("validators are paused") && error.contains("free some disk space"),
        "{error}"
    );
    wait_until("no run can be written, and the lease server says so", || {
        home.run(&["lease", "submit", run]).code != 0 && health(&leases) == unhealthy("NO_SPACE")
    });
    // The allocated pages may have room for a change.
    let taken = home.run(&["speculation", "submit", pipeline]);
    assert!(taken.code == 0 || taken.stderr.contains("cannot be stored"), "{taken:?}");
    assert_eq!(home.height(), at, "nothing is decided");

    fs::remove_file(filled).unwrap();
    wait_until("all validators go on", || all("running"));
    home.wait_height(at + 5);
    home.json(&["account", "fund", "dev-0", "1cby"]);
    home.json(&["job", "submit", "custom", "--wait", "--", "echo", "hi"]);
    wait_until("the lease server accepts changes", || health(&leases) == healthy());
    home.json(&["lease", "submit", run, "--wait", "--timeout", "60s"]);
    let lease = ["--delivery", "lease", "--wait", "--timeout", "60s", "--", "echo", "hi"];
    home.json(&[&["job", "submit", "custom"], &lease[..]].concat());
    let accepted = home.json(&["speculation", "submit", pipeline]);
    speculation::ended(&home, &number(&accepted["pipeline"]).to_string(), "completed");
    let pipelines = home.json(&["speculation", "ls"]);
    assert_eq!(list(&pipelines).len(), 2, "with the one accepted in that time: {pipelines}");
}

//! A home for one test, commands that run in it, and a listener that answers like a devnet.

use crate::shape;
use cowboy_devnet::{
    orchestrator::home::{DevnetHome, DevnetRecord, Home, Lock},
    topology::{Overrides, Plan, Topology},
    types::{ChainId, ErrorBody, ErrorCode, ErrorDetail, Text, TimeText},
};
use serde::Serialize;
use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};
use tempfile::TempDir;

/// A folder of devnets, and a working directory.
pub struct Folder(TempDir);

#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.0.path().join(relative)
    }

    pub fn home(&self) -> Home {
        Home::at(self.path("home"))
    }

    pub fn devnet(&self, name: &str) -> DevnetHome {
        self.home().devnet(&name.parse().unwrap())
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cowboyctl"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("COWBOYCTL_HOME", self.path("home"))
            // The same result on machines with a container engine.
            .env("COWBOYCTL_CONTAINERS", "off")
            // The same result with any configuration of the developer.
            .env("COWBOYCTL_CONFIG", "/dev/null")
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end, and checks JSON that it prints against its schema.
    pub fn run(&self, args: &[&str]) -> Outcome {
        let outcome = outcome(&mut self.command(args));
        shape::check(args, &outcome.stdout);
        outcome
    }

    /// Runs a command that succeeds with nothing on standard error, and returns its output.
    pub fn prints(&self, args: &[&str]) -> String {
        let outcome = self.run(args);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{args:?}: {outcome:?}");
        outcome.stdout
    }

    /// Runs a command that fails with this exit code, and returns its standard error.
    pub fn fails(&self, code: i32, args: &[&str]) -> String {
        let outcome = self.run(args);
        assert_eq!(outcome.code, code, "{args:?}: {outcome:?}");
        // The folder's name differs in every run.
        outcome.stderr.replace(&self.0.path().display().to_string(), "[folder]")
    }
}

pub fn outcome(command: &mut Command) -> Outcome {
    let output = command.output().unwrap();
    Outcome {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[derive(Debug, Clone)]
pub struct Request {
    /// Method and path, such as `GET /v1/status?node=validator-2`.
    pub line: String,
    pub headers: String,
    pub body: String,
}

pub enum Answer {
    /// A status and a body.
    Body(u16, String),
    /// Event-stream messages; the connection then stays open.
    Stream(Vec<String>),
}

impl Answer {
    pub fn json(value: &impl Serialize) -> Self {
        Self::Body(200, serde_json::to_string(value).unwrap())
    }

    pub fn error(code: ErrorCode, name: Option<&str>, message: &str) -> Self {
        let error = ErrorDetail {
            code,
            name: name.map(str::to_owned),
            message: message.to_owned(),
            hint: None,
        };
        Self::Body(code.status(), serde_json::to_string(&ErrorBody { error }).unwrap())
    }
}

/// A listener that poses as a devnet: its record names this process.
pub struct Fake {
    pub folder: Folder,
    pub plan: Plan,
    requests: Arc<Mutex<Vec<Request>>>,
    _lock: Lock,
}

impl Fake {
    /// A devnet called `local` whose API is this function.
    pub fn new(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let folder = Folder::new();
        let text = "";
        let plan = Topology::parse(text, "").unwrap().resolve(&Overrides::default(), text, "");
        let plan = plan.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let lock = folder.devnet("local").lock().unwrap();
        lock.write_topology(&plan.to_yaml()).unwrap();
        lock.write_token("secret").unwrap();
        for account in &plan.accounts {
            lock.write_account_key(&account.name, &plan.key(&account.name)).unwrap();
        }
        lock.write_record(&DevnetRecord {
            name: plan.name.clone(),
            pid: std::process::id(),
            started_at: time(),
            rpc_url: format!("http://{}", listener.local_addr().unwrap()),
            chain_id: Text(ChainId(0x0123_4567_89ab_cdef)),
            lease_url: None,
        })
        .unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let answer = Arc::new(answer);
        // The thread ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, answer) = (seen.clone(), answer.clone());
                thread::spawn(move || serve(stream.unwrap(), &seen, &*answer));
            }
        });
        Self { folder, plan, requests, _lock: lock }
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request) -> Answer) {
    let Some(request) = read(&mut stream) else { return };
    seen.lock().unwrap().push(request.clone());
    match answer(&request) {
        Answer::Body(status, body) => {
            let head = format!(
                "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _gone = stream.write_all((head + &body).as_bytes());
            let _gone = stream.shutdown(Shutdown::Write);
        }
        Answer::Stream(messages) => {
            let head = "HTTP/1.1 200 x\r\ncontent-type: text/event-stream\r\n\r\n";
            let _gone = stream.write_all((head.to_owned() + &messages.concat()).as_bytes());
        }
    }
    // Wait until the client closes the connection.
    let _end = stream.read(&mut [0]);
}

fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
        let headers = headers.to_ascii_lowercase();
        let length = headers
            .lines()
            .find_map(|header| header.strip_prefix("content-length: ")?.parse().ok())
            .unwrap_or(0);
        if body.len() >= length {
            let line = line.trim_end_matches(" HTTP/1.1").to_owned();
            return Some(Request { line, headers, body: body.to_owned() });
        }
    }
}

pub fn time() -> TimeText {
    "2026-11-20T09:53:00Z".parse().unwrap()
}

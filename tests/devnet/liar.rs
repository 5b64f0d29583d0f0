//! An API that lies.

use crate::support::{Home, Outcome};
use cowboy_devnet::home::{DevnetRecord, Home as Folder, Lock};
use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::{Arc, Mutex},
    thread,
};
use tempfile::TempDir;

/// Changes an answer: gets the path with its query, the status and the document.
pub type Lie = Box<dyn Fn(&str, &mut u16, &mut Value) + Send>;

/// An API that forwards requests to a devnet and changes the answers. It has a separate devnet
/// folder with the same topology.
pub struct Liar {
    folder: TempDir,
    url: String,
    lie: Arc<Mutex<Lie>>,
    _lock: Lock,
}

impl Liar {
    pub fn new(home: &Home) -> Self {
        let devnet = home.devnet("local");
        let record = devnet.record().unwrap().unwrap();
        let upstream = api(&record);
        let folder = tempfile::tempdir().unwrap();
        let other = Folder::at(folder.path()).devnet(devnet.name());
        let lock = other.lock().unwrap();
        lock.write_topology(&devnet.topology().unwrap().unwrap()).unwrap();
        lock.write_token(&devnet.token().unwrap()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let rpc_url = format!("http://{}", listener.local_addr().unwrap());
        let url = rpc_url.clone();
        lock.write_record(&DevnetRecord { rpc_url, pid: std::process::id(), ..record }).unwrap();
        let lie: Arc<Mutex<Lie>> = Arc::new(Mutex::new(Box::new(|_, _, _| ())));
        let told = lie.clone();
        // The thread ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let told = told.clone();
                thread::spawn(move || forward(stream.unwrap(), upstream, &told));
            }
        });
        Self { folder, url, lie, _lock: lock }
    }

    /// The API's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the lie for all further answers.
    pub fn say(&self, lie: Lie) {
        *self.lie.lock().unwrap() = lie;
    }

    /// A command that uses this API.
    pub fn command(&self, home: &Home, args: &[&str]) -> Command {
        let mut command = home.command(args);
        command.env("COWBOYCTL_HOME", self.folder.path());
        command
    }

    /// Runs a command against this lie.
    pub fn run(&self, home: &Home, args: &[&str], lie: Lie) -> Outcome {
        self.say(lie);
        Outcome::of(args, &mut self.command(home, args))
    }
}

/// Sends a GET request; returns the status and the document.
pub fn get(server: SocketAddr, path: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(server).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_slice(&answer[end..]).unwrap())
}

/// The address of a devnet's API.
pub fn api(record: &DevnetRecord) -> SocketAddr {
    record.rpc_url.trim_start_matches("http://").trim_end_matches('/').parse().unwrap()
}

/// Forwards one request, and returns the changed answer.
fn forward(mut stream: TcpStream, upstream: SocketAddr, lie: &Mutex<Lie>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or_default() == 0 {
        return;
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    // Reads the rest of the head; a GET request has no body.
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line).unwrap_or_default() == 0 {
            return;
        }
    }
    let (mut status, mut document) = get(upstream, &path);
    lie.lock().unwrap()(&path, &mut status, &mut document);
    let body = document.to_string();
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // The client may have closed the connection.
    let _gone = stream.write_all((head + &body).as_bytes());
}

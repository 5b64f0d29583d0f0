//! Programs of different versions that meet: each is told both versions, and what to do.

use crate::{
    nodes::Apart,
    support::wait_until,
    timers::{number, text},
};
use cowboy_devnet::handout::Peers;
use std::{
    fs::{self, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

/// The version of a protocol that no build speaks.
const OTHER: u32 = 99;

/// What a validator says first (`consensus::introduction`), in 64 bytes.
fn introduction(protocol: u32) -> Vec<u8> {
    let mut bytes = b"\xff\xff\xff\x7fcowb".to_vec();
    bytes.extend_from_slice(&protocol.to_be_bytes());
    bytes.extend_from_slice(b"7.8.9\x1b[31m");
    bytes.resize(64, 0);
    bytes
}

fn read_introduction(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    stream.read_exact(&mut bytes).expect("the other side introduces itself");
    bytes
}

fn p2p(apart: &Apart, validator: usize) -> String {
    let peers = fs::read_to_string(apart.file("peers.yaml")).unwrap();
    let peers: Peers = serde_yaml::from_str(&peers).unwrap();
    peers.validators[validator].p2p.to_string()
}

fn log_names_both(apart: &Apart, node: &str, known: &str) {
    let own = &apart.home.json(&["node", "version"]);
    let own = format!("cowboyctl {} (protocol {})", text(&own["version"]), own["protocol"]);
    let log = || {
        fs::read_to_string(apart.home.path(&format!("{node}/log/devnet.log"))).unwrap_or_default()
    };
    wait_until("the log names both versions", || {
        log().lines().any(|line| {
            line.contains(&format!("the peer is cowboyctl 7.8.9 (protocol {OTHER})"))
                && line.contains(&own)
                && line.contains(known)
        })
    });
    assert!(!log().contains('\x1b'), "a peer's text colours the log");
}

#[test]
fn validators_of_another_protocol_refuse_each_other_and_name_both() {
    let apart = Apart::export();
    let protocol = number(&apart.home.json(&["node", "version"])["protocol"]) as u32;
    let place = p2p(&apart, 0);

    // One that is dialled.
    apart.start("validator-0");
    // The node answers requests before it listens to validators.
    let mut connected = None;
    wait_until("the validators' port is open", || {
        connected = TcpStream::connect(&place).ok();
        connected.is_some()
    });
    let mut stream = connected.expect("it is connected");
    stream.write_all(&introduction(OTHER)).unwrap();
    let own = read_introduction(&mut stream);
    assert_eq!(own[..12], introduction(protocol)[..12]);
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "nothing follows");
    log_names_both(&apart, "validator-0", "a connection to the validators' port is refused");
    apart.home.json(&["devnet", "down", "validator-0"]);

    // One that dials. It goes on, and tries again.
    let listener = TcpListener::bind(&place).unwrap();
    let listening = thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&introduction(OTHER)).unwrap();
            assert_eq!(read_introduction(&mut stream)[..12], introduction(protocol)[..12]);
            assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "nothing follows");
        }
    });
    apart.start("validator-1");
    log_names_both(&apart, "validator-1", "a validator is refused");
    listening.join().unwrap();
    let head = apart.at("validator-1", &["chain", "head"]);
    assert_eq!(number(&head["height"]), 0, "{head}");
}

#[test]
fn a_store_of_another_format_is_refused_until_its_node_starts_without_it() {
    let apart = Apart::export();
    let folder = apart.start("validator-0");
    apart.home.json(&["devnet", "down", "validator-0"]);
    let stores: Vec<_> = stores(&apart.home.path("validator-0"));
    assert_eq!(stores.len(), 1, "{stores:?} of {folder}");
    // The format in the header of an SQLite file.
    let mut file = OpenOptions::new().write(true).open(&stores[0]).unwrap();
    file.seek(SeekFrom::Start(60)).unwrap();
    file.write_all(&99u32.to_be_bytes()).unwrap();
    drop(file);

    let options = apart.options("validators/validator-0.key");
    let mut args: Vec<_> = options.iter().map(String::as_str).collect();
    args.splice(0..0, ["node", "run"]);
    let refused = apart.home.run(&args);
    assert_ne!(refused.code, 0, "{refused:?}");
    let reads = number(&apart.home.json(&["node", "version"])["store"]);
    let log = fs::read_to_string(apart.home.path("validator-0/log/devnet.log")).unwrap();
    let says = format!("{}{log}", refused.stderr);
    let both = format!("the file has format 99, this program reads {reads}; run the program that");
    assert!(says.contains(&both) && says.contains("node run --resync"), "{says}");
    args.push("--resync");
    apart.home.json(&args);
    let head = apart.at("validator-0", &["chain", "head"]);
    assert_eq!(number(&head["height"]), 0, "{head}");
}

/// The databases below a folder.
fn stores(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let here = files.into_iter().filter(|path| path.file_name().unwrap() == "index.db");
    here.chain(folders.iter().flat_map(|folder| stores(folder))).collect()
}

#[test]
fn a_runner_refuses_an_api_of_another_version() {
    let apart = Apart::export();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answering = thread::spawn(move || {
        for header in ["cowboy-api: 9", "cowboy-api: 1\r\ncowboy-protocol: 99"] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n";
            stream.write_all(format!("{head}{header}\r\n\r\n{{}}").as_bytes()).unwrap();
        }
    });
    let key = apart.file("runners/left.key");
    let args = ["runner", "start", "--rpc-url", &url, "--key-file", &key];
    for both in ["version 9 of the API and this program", "version 99 of the protocol and this"] {
        let refused = apart.home.run(&args);
        assert_ne!(refused.code, 0, "{refused:?}");
        assert!(refused.stderr.contains(both), "{refused:?}");
        assert!(refused.stderr.contains("cowboyctl node version"), "{refused:?}");
    }
    answering.join().unwrap();
}

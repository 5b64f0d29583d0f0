//! Diagnostic information about a devnet, in one archive that is safe to share.
//!
//! ```text
//! report.json             the devnet, its seed, the program's version
//! topology.yaml           the topology that the chain began with
//! machine.json            the machine it runs on
//! files.txt               the files in its folder: modes, sizes, names
//! api/*.json              answers of a running devnet; api/errors.txt: failed requests
//! stored.json             for a stopped devnet: the head that each validator has stored
//! log/, processes/        the last 10 MiB of each log
//! nodes/                  the logs, status and metrics of validators in processes of their own
//! data/                   ports, and validators that joined and left
//! ```
//!
//! Files with secrets are left out. If a secret occurs in a log nevertheless, it is replaced by
//! `[hidden]`: all logs are searched for every key and token of the devnet's folder.

use crate::{
    client::{BlockAt, Client, ClientError},
    home::{DevnetHome, DevnetState, Home, HomeError, stored_validators},
    storage,
    topology::{Hosts, Overrides, Plan, Topology},
    types::{ActorQuery, Block, Event, EventQuery, JobQuery, PipelineQuery, TimerQuery},
};
use cowboy_host::files;
use jiff::Timestamp;
use rustix::{
    fs::statvfs,
    process::{Resource, getrlimit},
};
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};
use tar::{Builder, Header};
use tempfile::NamedTempFile;

/// Bytes taken from the end of each log.
const LOG_LIMIT: u64 = 10 << 20;
const FILES_LIMIT: usize = 10_000;
/// Number of recent blocks whose events are included.
pub const RECENT_BLOCKS: u64 = 100;
/// Time limit for each of the devnet's answers.
const PATIENCE: Duration = Duration::from_secs(5);
/// Compression level of Zstandard: logs shrink to a tenth even at this low one.
const LEVEL: i32 = 3;
/// Hex digits of a key or a token.
const SECRET: usize = 64;
const HIDDEN: &[u8] = b"[hidden]";

/// A report's contents in memory.
#[derive(Debug, Default)]
pub struct Report {
    entries: Vec<(String, Vec<u8>)>,
    errors: Vec<String>,
    seed: Option<u64>,
    now: Timestamp,
}

impl Report {
    /// Gathers all available information; for a stopped devnet, that comes from its files.
    pub async fn of(devnet: &DevnetHome, now: Timestamp) -> Result<Self, HomeError> {
        let mut report = Self { now, ..Self::default() };
        let state = devnet.state()?;
        let plan = plan(devnet);
        report.seed = plan.as_ref().map(|plan| plan.seed);
        let running = matches!(state, DevnetState::Running(_));
        let (name, pid) = match &state {
            DevnetState::Absent | DevnetState::Stopped => ("stopped", None),
            DevnetState::Died(record) => ("died", Some(record.pid)),
            DevnetState::Starting { pid } => ("starting", *pid),
            DevnetState::Running(record) => ("running", Some(record.pid)),
        };
        report.json(
            "report.json",
            &json!({
                "created_at": now.to_string(),
                "version": env!("CARGO_PKG_VERSION"),
                "devnet": devnet.name().as_str(),
                "status": name,
                "pid": pid,
                "seed": plan.as_ref().map(|plan| plan.seed),
                "validators": plan.as_ref().map(|plan| plan.validators.len()),
                "runners": plan.as_ref().map(|plan| plan.runners.len()),
                "log_filter": std::env::var("COWBOYCTL_LOG").ok(),
            }),
        );
        report.json("machine.json", &machine(devnet.path()));
        report.add("files.txt", listing(devnet.path()).into_bytes());
        for file in [
            "topology.yaml",
            "genesis.json",
            "devnet.json",
            "data/ports.json",
            "data/validators.json",
        ] {
            report.tail(file, &devnet.path().join(file));
        }
        for file in ["log/devnet.log", "log/devnet.log.1", "log/devnet.log.old"] {
            report.tail(file, &devnet.path().join(file));
        }
        for runner in folders(&devnet.processes_path()) {
            report.tail(
                &format!("processes/{runner}/log"),
                &devnet.processes_path().join(&runner).join("log"),
            );
        }
        // A runner in a container has a home of its own.
        for runner in folders(&devnet.nodes_path()) {
            let own = Home::at(devnet.nodes_path().join(&runner)).devnet(devnet.name());
            let log = own.processes_path().join(&runner).join("log");
            if log.is_file() {
                report.tail(&format!("nodes/{runner}/log"), &log);
            }
        }
        let nodes = Home::at(devnet.nodes_path()).list()?;
        for node in &nodes {
            for file in ["devnet.log", "devnet.log.1"] {
                let path = node.log_path().with_file_name(file);
                report.tail(&format!("nodes/{}/log/{file}", node.name()), &path);
            }
            report.ask_node(node).await;
        }
        if running {
            report.ask(devnet, plan.as_ref()).await;
        } else if !matches!(state, DevnetState::Starting { .. }) {
            report.json("stored.json", &stored(devnet));
        }
        if !report.errors.is_empty() {
            let text = report.errors.join("\n") + "\n";
            report.add("api/errors.txt", text.into_bytes());
        }
        let secrets = secrets(devnet, plan.as_ref())?;
        let digits = |secret: &String| secret.to_ascii_lowercase().into_bytes().try_into().ok();
        let secrets = secrets.iter().filter_map(digits).collect();
        for (_, text) in &mut report.entries {
            hide(text, &secrets);
        }
        Ok(report)
    }

    /// The seed of the devnet's keys, if its topology can be read.
    pub const fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// The text of an entry, without secrets.
    pub fn entry(&self, name: &str) -> Option<&[u8]> {
        self.entries.iter().find(|(entry, _)| entry == name).map(|(_, text)| text.as_slice())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// Writes a tar archive, compressed with Zstandard, that only its owner can read. The file
    /// appears once it is complete and replaces an existing one only with `replace`. Returns its
    /// length in bytes.
    pub fn write(&self, path: &Path, replace: bool) -> io::Result<u64> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = NamedTempFile::new_in(folder.unwrap_or_else(|| Path::new(".")))?;
        let mut archive = Builder::new(zstd::Encoder::new(file, LEVEL)?);
        for (name, bytes) in &self.entries {
            let mut header = Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o600);
            header.set_mtime(u64::try_from(self.now.as_second()).unwrap_or(0));
            // All entries are in one folder, wherever the archive is unpacked.
            archive.append_data(&mut header, format!("report/{name}"), bytes.as_slice())?;
        }
        let mut file = archive.into_inner()?.finish()?;
        file.flush()?;
        let length = file.as_file().metadata()?.len();
        let persisted = if replace { file.persist(path) } else { file.persist_noclobber(path) };
        persisted.map_err(|error| error.error)?;
        Ok(length)
    }

    fn add(&mut self, name: &str, bytes: Vec<u8>) {
        self.entries.push((name.to_owned(), bytes));
    }

    fn json(&mut self, name: &str, value: &impl Serialize) {
        let text = serde_json::to_string_pretty(value).expect("reports are plain data") + "\n";
        self.add(name, text.into_bytes());
    }

    fn tail(&mut self, name: &str, path: &Path) {
        match end_of(path) {
            Ok(Some(bytes)) => self.add(name, bytes),
            Ok(None) => {}
            Err(error) => self.errors.push(format!("{name}: {error}")),
        }
    }

    fn answer<T: Serialize>(&mut self, name: &str, answer: Result<T, ClientError>) -> Option<T> {
        match answer {
            Ok(answer) => {
                self.json(&format!("api/{name}.json"), &answer);
                Some(answer)
            }
            Err(error) => {
                self.errors.push(format!("{name}: {error}"));
                None
            }
        }
    }

    /// Asks a node in a process of its own, unless it is down.
    async fn ask_node(&mut self, node: &DevnetHome) {
        let Ok(client) = Client::of_devnet(node) else { return };
        let (client, name) = (client.with_timeout(PATIENCE), node.name());
        match client.metrics().await {
            Ok(text) => self.add(&format!("nodes/{name}/metrics.txt"), text.into_bytes()),
            Err(error) => self.errors.push(format!("{name}: {error}")),
        }
        match client.status().await {
            Ok(status) => self.json(&format!("nodes/{name}/status.json"), &status),
            Err(error) => self.errors.push(format!("{name}: {error}")),
        }
    }

    async fn ask(&mut self, devnet: &DevnetHome, plan: Option<&Plan>) {
        let client = match Client::of_devnet(devnet) {
            Ok(client) => client.with_timeout(PATIENCE),
            Err(error) => return self.errors.push(error.to_string()),
        };
        let _ = self.answer("status", client.status().await);
        let head = self.answer("head", client.head().await);
        let _ = self.answer::<Block>("block", client.block(BlockAt::Latest).await);
        let _ = self.answer("parameters", client.parameters().await);
        let _ = self.answer("governance", client.governance().await);
        let _ = self.answer("faults", client.faults().await);
        let _ = self.answer("validators", client.validators().await);
        let _ = self.answer("runners", client.runners().await);
        let _ = self.answer("accounts", client.accounts().await);
        let _ = self.answer("presence", client.presence(BlockAt::Latest).await);
        let _ = self.answer("jobs", client.jobs(&JobQuery::default()).await);
        let _ = self.answer("actors", client.actors(&ActorQuery::default()).await);
        let _ = self.answer("timers", client.timers(&TimerQuery::default()).await);
        // The agent is one of the devnet's process.
        if plan.is_none_or(|plan| plan.hosts == Hosts::InProcess) {
            let _ = self.answer("pipelines", client.pipelines(&PipelineQuery::default()).await);
        }
        let first = head.map_or(0, |head| head.height.saturating_sub(RECENT_BLOCKS));
        let _ = self.answer::<Vec<Event>>("events", events(&client, first).await);
    }
}

async fn events(client: &Client, first: u64) -> Result<Vec<Event>, ClientError> {
    let (mut all, mut next) = (Vec::new(), Some(first));
    while let Some(from) = next {
        let query = EventQuery { from: Some(from), ..EventQuery::default() };
        let page = client.events(&query).await?;
        all.extend(page.events);
        // A page that does not advance would be requested forever.
        next = page.next.filter(|next| *next > from);
    }
    Ok(all)
}

fn plan(devnet: &DevnetHome) -> Option<Plan> {
    let text = devnet.topology().ok()??;
    Topology::parse(&text, "").ok()?.resolve(&Overrides::default(), &text, "").ok()
}

/// The heads that validators have stored, by name.
fn stored(devnet: &DevnetHome) -> Value {
    let heads = stored_validators(devnet.path()).into_iter().map(|(validator, folder)| {
        let file = folder.join("index.db");
        let head = match storage::head_of(&file) {
            Ok(Some(head)) => json!({
                "height": head.height.get(), "hash": head.hash.to_string(),
                "chain_id": format!("{:#x}", head.chain_id),
            }),
            Ok(None) => Value::Null,
            Err(error) => json!({ "error": error.to_string() }),
        };
        (validator, head)
    });
    Value::Object(heads.collect())
}

fn machine(folder: &Path) -> Value {
    let line = |file: &str| fs::read_to_string(file).ok().map(|text| text.trim().to_owned());
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = |field: &str| {
        let line = memory.lines().find(|line| line.starts_with(field))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
    };
    let disk = statvfs(folder).ok();
    let files = getrlimit(Resource::Nofile);
    json!({
        "os": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "kernel": line("/proc/sys/kernel/osrelease"),
        "cores": thread::available_parallelism().map_or(0, usize::from),
        "load": line("/proc/loadavg"),
        "memory_bytes": memory("MemTotal:"),
        "memory_available_bytes": memory("MemAvailable:"),
        "disk_free_bytes": disk.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
        "open_files_limit": { "soft": files.current, "hard": files.maximum },
    })
}

fn listing(folder: &Path) -> String {
    let (mut found, mut open) = (BTreeMap::new(), vec![PathBuf::new()]);
    while let Some(relative) = open.pop() {
        for entry in fs::read_dir(folder.join(&relative)).into_iter().flatten().flatten() {
            let path = relative.join(entry.file_name());
            let Ok(metadata) = fs::symlink_metadata(entry.path()) else { continue };
            if metadata.is_dir() && found.len() < FILES_LIMIT {
                open.push(path.clone());
            }
            found.insert(path, (metadata.mode() & 0o7777, metadata.len()));
        }
    }
    let lines = found.iter().take(FILES_LIMIT);
    let lines =
        lines.map(|(path, (mode, size))| format!("{mode:04o} {size:>12} {}\n", path.display()));
    lines.collect()
}

/// The names of folders in a folder, sorted.
fn folders(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The end of a file, starting at the beginning of a line; `None` if there is no file.
fn end_of(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(mut file) = files::if_there(File::open(path))? else { return Ok(None) };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_LIMIT)))?;
    let mut bytes = Vec::new();
    file.take(LOG_LIMIT).read_to_end(&mut bytes)?;
    if length > LOG_LIMIT
        && let Some(line) = bytes.iter().position(|byte| *byte == b'\n')
    {
        bytes.drain(..=line);
    }
    Ok(Some(bytes))
}

/// All keys and tokens of a devnet, in the form of its files.
fn secrets(devnet: &DevnetHome, plan: Option<&Plan>) -> Result<Vec<String>, HomeError> {
    let mut secrets = Vec::new();
    for account in devnet.accounts()? {
        let key = files::read_if_there(&devnet.account_key_path(&account))?;
        secrets.extend(key.map(|key| key.trim().to_owned()));
    }
    if let Some(plan) = plan {
        let nodes = plan.validators.iter().map(|validator| &validator.name);
        let nodes = nodes.chain(plan.runners.iter().map(|runner| &runner.name));
        secrets.extend(nodes.map(|node| hex::encode(plan.key(node).to_bytes())));
    }
    let tokens = [devnet.processes_path(), devnet.nodes_path()].into_iter().flat_map(|processes| {
        folders(&processes).into_iter().map(move |node| processes.join(node).join("token"))
    });
    for token in tokens.chain([devnet.token_path()]) {
        secrets.extend(files::read_if_there(&token)?.map(|token| token.trim().to_owned()));
    }
    Ok(secrets)
}

/// Replaces secrets, which all have 64 hex digits, in lower or upper case.
fn hide(text: &mut Vec<u8>, secrets: &BTreeSet<[u8; SECRET]>) {
    let (mut shown, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(window) = text.get(at..at + SECRET) {
        // No secret can begin before a character that is not a hex digit.
        if let Some(other) = window.iter().rposition(|byte| !byte.is_ascii_hexdigit()) {
            shown.extend_from_slice(&window[..=other]);
            at += other + 1;
            continue;
        }
        let mut digits = [0; SECRET];
        digits.copy_from_slice(window);
        digits.make_ascii_lowercase();
        if secrets.contains(&digits) {
            shown.extend_from_slice(HIDDEN);
            at += SECRET;
        } else {
            shown.push(window[0]);
            at += 1;
        }
    }
    shown.extend_from_slice(&text[at..]);
    *text = shown;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        let check = |text: &str, expected: &str| {
            let mut text = text.as_bytes().to_vec();
            hide(
                &mut text,
                &BTreeSet::from(["00112233445566778899aabbccddeeff"
                    .repeat(2)
                    .as_bytes()
                    .try_into()
                    .unwrap()]),
            );
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        };
        let secret = &"00112233445566778899aabbccddeeff".repeat(2);
        check("", "");
        check("nothing", "nothing");
        check(secret, "[hidden]");
        check(
            &format!("{}{secret}{}", &secret[..9], &format!("{secret}{}", &secret[..6])),
            &format!("{}[hidden][hidden]{}", &secret[..9], &secret[..6]),
        );
        check(
            &format!("a 0x{} b{secret}{secret}", secret.to_uppercase()),
            "a 0x[hidden] b[hidden][hidden]",
        );
        check(&secret[1..], &secret[1..]);
        check(&format!("ab-{}-{secret}", &secret[1..]), &format!("ab-{}-[hidden]", &secret[1..]));
    }

    #[test]
    fn the_end_of_a_log_begins_with_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert!(end_of(&path).unwrap().is_none());
        fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(end_of(&path).unwrap().unwrap(), b"one\ntwo\n");
        let line = "0123456789abcde\n";
        fs::write(&path, line.repeat((LOG_LIMIT as usize / line.len()) + 2) + "x").unwrap();
        let end = end_of(&path).unwrap().unwrap();
        assert!(end.len() as u64 <= LOG_LIMIT);
        assert!(end.starts_with(line.as_bytes()) && end.ends_with(b"\nx"));
    }
}

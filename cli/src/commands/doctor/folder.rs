//! Checks of the home of all devnets and of each devnet's folder, whether it runs or not.

use super::finding::{Finding, Owner, Repair, Severity as Verdict};
use crate::commands::trust;
use cowboy_devnet::{
    home::{DevnetHome, DevnetState, Home, stored_validators},
    orchestrator::ports::{self, Ports, Transport},
    runner::folder::RunnerFolder,
    snapshot::Snapshots,
    storage::{FORMAT, stored_format},
    topology::{Name, Overrides, Topology},
};
use cowboy_lease::folder::LeaseFolder;
use jiff::Timestamp;
use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Free disk in bytes below which a devnet may stop at any minute; ten times as much is a warning.
const DISK_PROBLEM: u64 = 128 << 20;
const DISK_WARNING: u64 = 10 * DISK_PROBLEM;

/// Total bytes of logs above which there is a warning.
const LOG_WARNING: u64 = 512 << 20;

/// Tolerance in seconds for a time in the future that another process wrote.
const AHEAD_SECS: i64 = 2;

pub fn of_home(home: &Home) -> (Vec<Finding>, Vec<DevnetHome>) {
    let path = home.path();
    let mut findings = vec![writable(path)];
    // A folder that does not exist yet will be on the same disk as its nearest existing ancestor.
    if let Some(there) = path.ancestors().find(|ancestor| ancestor.is_dir()) {
        findings.extend(disk(there));
    }
    let devnets = match home.list() {
        Ok(devnets) => devnets,
        Err(error) => {
            findings.push(unreadable("home", path.display(), &error));
            Vec::new()
        }
    };
    findings.extend(unusable(home));
    findings.extend(unfinished(home));
    findings.extend(lease(&LeaseFolder::of(home.path())));
    (findings, devnets)
}

/// Devnet folders that no command finds, because their lock is missing or not a file.
fn unusable(home: &Home) -> Vec<Finding> {
    let mut findings = Vec::new();
    for entry in fs::read_dir(home.path()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_str().and_then(|name| name.parse::<Name>().ok());
        let Some(devnet) = name.map(|name| home.devnet(&name)) else { continue };
        if devnet.exists() {
            continue;
        }
        let (name, lock) = (devnet.name(), devnet.lock_path());
        if lock.symlink_metadata().is_ok() {
            let what = format!("{} is not a file: the devnet cannot be used", lock.display());
            let fix = format!("move it away, then: cowboyctl devnet up --detach --name {name}");
            findings.push(Finding::problem("folder", name, what).fix(fix));
        } else if devnet.topology_path().is_file() {
            let what = format!("{} is missing: no command finds the devnet", lock.display());
            let fix = format!("cowboyctl devnet up --detach --name {name}");
            findings.push(Finding::warning("folder", name, what).fix(fix));
        }
    }
    findings.sort_by(|a, b| a.subject.cmp(&b.subject));
    findings
}

/// Parts of snapshots and devnets that a killed process left half written or half deleted.
fn unfinished(home: &Home) -> Vec<Finding> {
    let left = match Snapshots::of(home).leftovers() {
        Ok(left) => left,
        Err(error) => {
            let found = Finding::problem("folder", home.path().display(), error.to_string());
            return vec![found.fix("move it away or remove it")];
        }
    };
    let what = "a killed command left this part of a snapshot or a devnet";
    let found = |path: PathBuf| {
        Finding::warning("stale", path.display(), what)
            .fix(format!("rm -r {}", path.display()))
            .repair(Repair::Sweep(home.clone()))
    };
    left.into_iter().map(found).collect()
}

fn writable(path: &Path) -> Finding {
    let subject = path.display();
    let mode = match fs::metadata(path) {
        Ok(it) if it.is_dir() => it.permissions().mode(),
        Ok(_) => {
            return Finding::problem("home", subject, "it is not a folder")
                .fix("move it away, or name another place: export COWBOYCTL_HOME=DIR");
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Finding::ok("home", subject, "not there yet; the first devnet makes it");
        }
        Err(error) => return unreadable("home", subject, &error),
    };
    if let Err(error) = tempfile::tempfile_in(path) {
        return Finding::problem("home", subject, format!("nothing can be written there: {error}"))
            .fix("make it yours, or name another place: export COWBOYCTL_HOME=DIR");
    }
    match mode & 0o077 {
        0 => Finding::ok("home", subject, "private and writable"),
        others => {
            let what = format!("others may {}", allowed(others));
            let found = match others & 0o022 {
                0 => Finding::warning("home", &subject, what),
                _ => Finding::problem("home", &subject, what),
            };
            // The home may be a link, but a repair does not follow links.
            let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            found.fix(format!("chmod 700 {subject}")).repair(Repair::Mode(real, 0o700))
        }
    }
}

fn allowed(mode: u32) -> &'static str {
    match (mode & 0o044 != 0, mode & 0o022 != 0) {
        (_, true) => "change it",
        (true, false) => "read it",
        (false, false) => "enter it",
    }
}

fn disk(path: &Path) -> Option<Finding> {
    let it = rustix::fs::statvfs(path).ok()?;
    Some(room(path, it.f_bavail.saturating_mul(it.f_frsize)))
}

fn room(path: &Path, free: u64) -> Finding {
    let what = format!("{} MiB of disk are free", free >> 20);
    let found = match free {
        DISK_WARNING.. => return Finding::ok("disk", path.display(), what),
        DISK_PROBLEM.. => Finding::warning("disk", path.display(), what),
        _ => Finding::problem("disk", path.display(), what),
    };
    found.fix("delete chains that are not needed: cowboyctl devnet reset NAME")
}

fn lease(folder: &LeaseFolder) -> Vec<Finding> {
    let subject = folder.path().display();
    if folder.path().is_symlink() {
        let found = Finding::warning("folder", subject, "it is a link, and is not followed");
        return vec![found.fix("put the folder itself there")];
    }
    let mut findings = Vec::new();
    match (folder.record(), folder.last_record()) {
        (Ok(None), Ok(Some(record))) => {
            let path = folder.path().join("server.json");
            let what =
                format!("process {} has ended, and its server.json is still there", record.pid);
            findings.push(stale(&subject, what, Owner::Lease(folder.clone()), path));
        }
        (Err(error), _) | (_, Err(error)) => findings.push(unreadable("stale", subject, &error)),
        _ => {}
    }
    findings.extend(exposed(&[folder.token_path(), folder.path().join("lease.db")]));
    findings
}

pub fn of_devnet(devnet: &DevnetHome) -> Vec<Finding> {
    let state = match devnet.state() {
        Ok(state) => state,
        Err(error) => return vec![unreadable("lock", devnet.name(), &error)],
    };
    let strange = devnet.check().err();
    let of_node = devnet.is_of_node();
    let mut findings = vec![if of_node { genesis(devnet) } else { topology(devnet) }];
    findings.extend(record(devnet, &state));
    findings.extend(runners(devnet));
    if state.is_down() {
        findings.extend(resetting(devnet));
        findings.extend(leftovers(devnet));
        findings.extend(kept_ports(devnet));
    }
    findings.push(format(devnet));
    findings.extend(keys(devnet));
    findings.push(logs(devnet));
    if let Some(error) = strange {
        // A link may lead out of the folder, so nothing is changed through one.
        for finding in &mut findings {
            finding.repair = None;
        }
        let fix = "move it away or remove it; until then the devnet is not repaired";
        findings.push(Finding::problem("folder", devnet.name(), error.to_string()).fix(fix));
    }
    findings
}

fn resetting(devnet: &DevnetHome) -> Option<Finding> {
    let what = "a reset was begun and never finished: the chain is gone, or a part of it";
    let fix = format!("finish it: cowboyctl devnet reset {}", devnet.name());
    devnet.is_resetting().then(|| Finding::warning("stale", devnet.name(), what).fix(fix))
}

/// The genesis document of a single node.
fn genesis(devnet: &DevnetHome) -> Finding {
    match trust::document_of(devnet) {
        Ok(Some((document, _))) => {
            let what = format!("a node of devnet `{}`", document.name);
            Finding::ok("genesis", devnet.name(), what)
        }
        Ok(None) => Finding::ok("genesis", devnet.name(), "it never started"),
        Err(error) => Finding::problem("genesis", devnet.name(), error.to_string())
            .fix("write the file again: cowboyctl devnet export nodes DIR"),
    }
}

fn topology(devnet: &DevnetHome) -> Finding {
    let path = devnet.topology_path();
    let text = match devnet.topology() {
        Ok(Some(text)) => text,
        Ok(None) if devnet.has_chain() => {
            let what = format!("{} is missing, and there is a chain", path.display());
            return Finding::problem("topology", devnet.name(), what)
                .fix("put it back, from a snapshot for example");
        }
        Ok(None) => return Finding::ok("topology", devnet.name(), "it never started"),
        Err(error) => return unreadable("topology", devnet.name(), &error),
    };
    let file = path.display().to_string();
    let parsed = Topology::parse(&text, &file);
    match parsed.and_then(|topology| topology.resolve(&Overrides::default(), &text, &file)) {
        Ok(plan) => {
            let (validators, runners) = (plan.validators.len(), plan.runners.len());
            let what = format!("{validators} validators, {runners} runners");
            Finding::ok("topology", devnet.name(), what)
        }
        Err(error) => {
            let error = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            Finding::problem("topology", devnet.name(), error)
                .fix(format!("correct the line, and see: cowboyctl devnet validate {file}"))
        }
    }
}

/// Checks `devnet.json`: it may be left by a process that is gone, or come from the future.
fn record(devnet: &DevnetHome, state: &DevnetState) -> Vec<Finding> {
    let (name, path) = (devnet.name(), devnet.record_path());
    let stale = |what: String| stale(name, what, Owner::Devnet(devnet.clone()), path.clone());
    let record = match devnet.record() {
        Ok(Some(record)) => record,
        Ok(None) => return Vec::new(),
        Err(error) if state.is_down() => return vec![stale(error.to_string())],
        Err(error) => return vec![unreadable("stale", name, &error)],
    };
    let mut findings = Vec::new();
    if state.is_down() {
        let what = format!("it has died: its process {} was killed", record.pid);
        findings.push(Finding {
            fix: Some(format!("start it again: cowboyctl devnet up --detach --name {name}")),
            ..stale(what)
        });
    }
    let ahead = record.started_at.0.duration_since(Timestamp::now()).as_secs();
    if ahead > AHEAD_SECS {
        let what = format!("it was started {ahead} s from now: the clock has gone back since");
        findings.push(Finding::warning("clock", name, what).fix("set the clock: timedatectl"));
    }
    findings
}

fn runners(devnet: &DevnetHome) -> Vec<Finding> {
    let mut findings = Vec::new();
    for entry in fs::read_dir(devnet.processes_path()).into_iter().flatten().flatten() {
        let Some(name) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let folder = RunnerFolder::of(devnet, &name);
        let path = folder.path().join("runner.json");
        if path.exists() && matches!(folder.holder(), Ok(None)) {
            let what = format!("runner `{name}` does not run, and its runner.json is still there");
            findings.push(stale(devnet.name(), what, Owner::Runner(folder), path));
        }
    }
    findings
}

/// Files that a process was killed while writing.
fn leftovers(devnet: &DevnetHome) -> Vec<Finding> {
    let folders = [devnet.path().to_owned(), devnet.accounts_path(), devnet.data_path()];
    let files = folders.iter().flat_map(|folder| files(folder));
    let begun = files.filter(|file| file.extension().is_some_and(|extension| extension == "new"));
    begun
        .map(|path| {
            let what = format!("{} was begun and never finished", path.display());
            stale(devnet.name(), what, Owner::Devnet(devnet.clone()), path)
        })
        .collect()
}

/// The ports that a stopped devnet will take again.
fn kept_ports(devnet: &DevnetHome) -> Vec<Finding> {
    let path = devnet.data_path().join("ports.json");
    // Reading a pipe would wait for its writer.
    let kept = match path.is_file().then(|| fs::read_to_string(&path)) {
        Some(Ok(text)) => serde_json::from_str::<Ports>(&text),
        _ => return Vec::new(),
    };
    let Ok(ports) = kept else {
        let what = format!("{} cannot be read: other ports will be chosen", path.display());
        return vec![Finding::warning("ports", devnet.name(), what)];
    };
    let nodes =
        ports.p2p.iter().map(|(node, port)| (Transport::Tcp, *port, format!("p2p of {node}")));
    let quic =
        ports.quic.iter().map(|(node, port)| (Transport::Udp, *port, format!("QUIC of {node}")));
    let api = (Transport::Tcp, ports.api, "the control API".to_owned());
    let lease = (Transport::Tcp, ports.lease, "the lease server".to_owned());
    let all: Vec<_> = [api, lease].into_iter().chain(nodes).chain(quic).collect();
    let mut findings = Vec::new();
    for (transport, port, what) in all.iter().filter(|(_, port, _)| *port != 0) {
        if let Err(error) = ports::check(*transport, *port) {
            let fix = format!(
                "stop that process; or have others chosen: rm {} (addresses change)",
                path.display()
            );
            let what = format!("{what}: {error}");
            findings.push(Finding::problem("ports", devnet.name(), what).fix(fix));
        }
    }
    if findings.is_empty() {
        let what = format!("all {} are free", all.len());
        findings.push(Finding::ok("ports", devnet.name(), what));
    }
    findings
}

fn format(devnet: &DevnetHome) -> Finding {
    let name = devnet.name();
    let mut stored = 0;
    for folder in stored_validators(devnet.path()).into_values() {
        let path = folder.join("index.db");
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            let what = format!("{} is not a file", path.display());
            return Finding::problem("format", name, what).fix("move it away");
        }
        let reset = format!("start a new chain: cowboyctl devnet reset {name}");
        match stored_format(&path) {
            Ok(Some(FORMAT) | None) => stored += 1,
            Ok(Some(other)) => {
                let path = path.display();
                let what = format!("{path} has format {other}, this program reads {FORMAT}");
                let fix = format!("use the version that wrote it; or {reset}");
                return Finding::problem("format", name, what).fix(fix);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return unreadable("format", name, &error).fix(reset),
        }
    }
    match stored {
        0 => Finding::ok("format", name, "there is no chain yet"),
        _ => Finding::ok("format", name, format!("{FORMAT}, as this program reads")),
    }
}

/// Files that other users may not read: keys, tokens, and the seed that keys derive from.
fn keys(devnet: &DevnetHome) -> Vec<Finding> {
    let mut secrets = vec![devnet.token_path(), devnet.topology_path()];
    secrets.extend(files(&devnet.accounts_path()).filter(|file| file.extension().is_some()));
    secrets.push(devnet.lease_path().join("lease.db"));
    for folder in [devnet.processes_path(), devnet.nodes_path()] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            secrets.push(entry.path().join("token"));
        }
    }
    let contained = devnet.compose_path();
    secrets.extend([contained.join("ca.key"), contained.join("shared/api.token")]);
    for kind in ["validators", "runners"] {
        for entry in fs::read_dir(contained.join(kind)).into_iter().flatten().flatten() {
            secrets.extend(["key", "tls.key"].map(|file| entry.path().join(file)));
        }
    }
    let in_pods = devnet.kubernetes_path();
    let secret = ["ca.key", "api.token", "manifests/20-secrets.yaml"];
    secrets.extend(secret.map(|file| in_pods.join(file)));
    secrets.extend(
        files(&devnet.handout_path())
            .filter(|file| file.extension().is_some_and(|extension| extension == "key")),
    );
    let found = exposed(&secrets);
    match found.is_empty() {
        true => vec![Finding::ok("keys", devnet.name(), "other users cannot read them")],
        false => found,
    }
}

/// Problems with files that others may read or change.
fn exposed(paths: &[PathBuf]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in paths {
        let Ok(it) = fs::symlink_metadata(path) else { continue };
        if !it.is_file() {
            let what = "it is not a file, but a link or something else";
            let found = Finding::problem("keys", path.display(), what);
            findings.push(found.fix("move it away or remove it"));
            continue;
        }
        let others = it.permissions().mode() & 0o077;
        if others != 0 {
            let file = path.display();
            findings.push(
                Finding::problem("keys", &file, format!("others may {}", allowed(others)))
                    .fix(format!("chmod 600 {file}"))
                    .repair(Repair::Mode(path.clone(), 0o600)),
            );
        }
    }
    findings
}

fn logs(devnet: &DevnetHome) -> Finding {
    let path = devnet.log_path();
    let folder = path.parent().unwrap_or(devnet.path());
    let sizes = files(folder).filter_map(|file| fs::metadata(file).ok());
    let bytes: u64 = sizes.map(|it| it.len()).sum();
    let what = format!("{} MiB", bytes >> 20);
    if bytes < LOG_WARNING {
        return Finding::ok("logs", devnet.name(), what);
    }
    let fix = format!("empty it: truncate -s 0 {}", path.display());
    Finding { state: Verdict::Warning, ..Finding::ok("logs", devnet.name(), what) }.fix(fix)
}

fn files(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file())
}

/// A file that its owner left behind.
fn stale(subject: impl ToString, what: String, owner: Owner, path: PathBuf) -> Finding {
    Finding::warning("stale", subject, what)
        .fix(format!("rm {}", path.display()))
        .repair(Repair::Remove(owner, path))
}

fn unreadable(check: &'static str, subject: impl ToString, error: &impl ToString) -> Finding {
    Finding::problem(check, subject, error.to_string())
        .fix("make it readable for you, or remove it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told() {
        let check = |free, expected: Verdict| {
            assert_eq!(room(Path::new("/"), free).state, expected, "{free}");
        };
        check(0, Verdict::Problem);
        check(DISK_PROBLEM, Verdict::Warning);
        check(DISK_WARNING, Verdict::Ok);
    }

    #[test]
    fn long_logs_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let devnet = Home::at(folder.path()).devnet(&"a".parse().unwrap());
        drop(devnet.lock().unwrap());
        assert_eq!(logs(&devnet).state, Verdict::Ok);
        // A hole takes no disk.
        let log = fs::File::create(devnet.log_path()).unwrap();
        log.set_len(LOG_WARNING).unwrap();
        assert_eq!(logs(&devnet).state, Verdict::Warning);
    }
}

//! Checks of everything that a devnet has stored: it is complete and consistent.

use super::finding::Finding;
use crate::commands::trust::document_of;
use cowboy_devnet::{
    handout::GenesisDocument,
    home::{DevnetHome, stored_validators},
    snapshot::faults_of,
    storage::{StorageError, ValidatorStore},
    validator::check::{self, StoreFault},
};
use cowboy_engine::chain::Genesis;
use serde::Deserialize;
use std::{collections::BTreeSet, fs, io, path::Path};

/// The changes of the validator set since the topology, as the devnet stores them.
#[derive(Default, Deserialize)]
struct StoredChanges {
    left: Vec<String>,
}

/// A finding for each fault, or one for each validator that has none.
pub fn of_devnet(devnet: &DevnetHome) -> Vec<Finding> {
    let name = devnet.name();
    if devnet.is_resetting() {
        let what = "its reset is not finished: there is no chain to check";
        let fix = format!("finish it: cowboyctl devnet reset {name}");
        return vec![Finding::warning("stored", name, what).fix(fix)];
    }
    let (validators, data) = (devnet.validators_path(), devnet.data_path());
    let lease = devnet.lease_path();
    // None of these exist if the devnet never started or was reset.
    if ![&validators, &data, &lease].into_iter().any(|path| is_there(path)) {
        return Vec::new();
    }
    let document = match document_of(devnet) {
        Ok(Some((document, _))) => document,
        Ok(None) => {
            let path = devnet.topology_path();
            let what = format!("{} is missing: the chain cannot be checked", path.display());
            return vec![Finding::problem("stored", name, what).fix(restore(devnet))];
        }
        // Another check reports this.
        Err(_) => return Vec::new(),
    };
    let mut findings = Vec::new();
    if is_there(&validators) || is_there(&devnet.nodes_path()) {
        for validator in members(devnet, &document) {
            findings.extend(of_validator(devnet, &validator, &document.genesis));
        }
    } else {
        let what = format!("{} is missing: no validator has a chain", validators.display());
        findings.push(Finding::problem("stored", name, what).fix(restore(devnet)));
    }
    if !is_there(&data) {
        let data = data.display();
        let what = format!("{data} is missing: ports, pipelines and the newest votes are lost");
        findings.push(Finding::problem("stored", name, what).fix(restore(devnet)));
    }
    findings.extend(database(devnet, &devnet.speculation_path(), "pipelines"));
    findings.extend(database(devnet, &lease.join("lease.db"), "lease jobs"));
    findings
}

/// The validators that should have a store here, and those that have one.
fn members(devnet: &DevnetHome, document: &GenesisDocument) -> BTreeSet<String> {
    let path = devnet.data_path().join("validators.json");
    let text = path.is_file().then(|| fs::read_to_string(&path).ok()).flatten();
    let changes: Option<StoredChanges> = text.and_then(|text| serde_json::from_str(&text).ok());
    let left = changes.unwrap_or_default().left;
    let validators = document.genesis.validators.iter().map(|v| v.pubkey.address());
    let validators: BTreeSet<_> = validators.filter(|_| !devnet.is_of_node()).collect();
    let planned = document.names.iter().filter(|(_, address)| validators.contains(address));
    let planned = planned.map(|(name, _)| name.to_string());
    let there = stored_validators(devnet.path()).into_keys();
    planned.filter(|name| !left.contains(name)).chain(there).collect()
}

fn of_validator(devnet: &DevnetHome, name: &str, genesis: &Genesis) -> Vec<Finding> {
    let subject = format!("{}/{name}", devnet.name());
    let fix = format!("cowboyctl --devnet {} validator resync {name}", devnet.name());
    let stored = stored_validators(devnet.path()).remove(name);
    let path = stored.unwrap_or_else(|| devnet.validators_path().join(name)).join("index.db");
    if !is_there(&path) {
        let what = "it has no store: its next start takes the chain from the others";
        return vec![Finding::warning("stored", subject, what)];
    }
    if !path.symlink_metadata().is_ok_and(|found| found.is_file()) {
        let what = format!("{} is not a file", path.display());
        return vec![Finding::problem("stored", subject, what).fix("move it away")];
    }
    let store = match ValidatorStore::open(&path, genesis.chain_id()) {
        Ok(store) => store,
        // Another check reports this.
        Err(StorageError::Format { .. }) => return Vec::new(),
        Err(StorageError::Chain { got, expected }) => {
            let path = path.display();
            let what = format!("its store is of chain {got:#x}, the topology is of {expected:#x}");
            let fix = format!(
                "move it away, and the next start takes the chain from the others: {path}; where \
                 all stores say so, the topology or the program has changed"
            );
            return vec![Finding::problem("stored", subject, what).fix(fix)];
        }
        Err(error) => {
            return vec![Finding::problem("stored", subject, error.to_string()).fix(fix)];
        }
    };
    let faults = check::all(&store, genesis);
    if faults.is_empty() {
        let head = store.head().ok().flatten().map_or(0, |(height, _)| height.get());
        let what = format!("blocks {} to {head} are consistent", store.kept_from());
        return vec![Finding::ok("stored", subject, what)];
    }
    let problem = |fault: StoreFault| Finding::problem("stored", &subject, fault.to_string());
    faults.into_iter().map(|fault| problem(fault).fix(fix.clone())).collect()
}

/// The faults of the SQLite file of `what`; none if the file does not exist.
fn database(devnet: &DevnetHome, path: &Path, what: &str) -> Vec<Finding> {
    let faults = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => vec![error.to_string()],
        Ok(found) if !found.is_file() => vec!["it is not a file".to_owned()],
        Ok(_) => faults_of(path),
    };
    let path = path.display();
    let fix = format!(
        "move it away while the devnet is stopped; its {what} are lost: {path}; or {}",
        restore(devnet)
    );
    let found =
        |fault: String| Finding::problem("stored", devnet.name(), format!("{path}: {fault}"));
    faults.into_iter().map(|fault| found(fault).fix(fix.clone())).collect()
}

fn restore(devnet: &DevnetHome) -> String {
    let name = devnet.name();
    format!(
        "bring a snapshot back: cowboyctl devnet snapshot load SNAPSHOT --name {name} --force; or \
         begin a new chain: cowboyctl devnet reset {name}"
    )
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

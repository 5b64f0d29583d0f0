//! Checks of all that a devnet's validators have stored.

use super::finding::Finding;
use crate::commands::devnet::saved_plan;
use cowboy_devnet::{
    home::DevnetHome,
    orchestrator::genesis::genesis,
    storage::{StorageError, Store},
    validator::check,
};
use std::fs;

/// A finding for each fault, or one for a validator without.
pub fn of_devnet(devnet: &DevnetHome) -> Vec<Finding> {
    let Ok(Some(plan)) = saved_plan(devnet) else { return Vec::new() };
    let genesis = genesis(&plan);
    let Ok(entries) = fs::read_dir(devnet.validators_path()) else { return Vec::new() };
    let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    let mut findings = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let subject = format!("{}/{name}", devnet.name());
        let fix = format!("cowboyctl --devnet {} validator resync {name}", devnet.name());
        let path = folder.join("index.db");
        if !path.exists() {
            let what = "it has no store: its next start takes the chain from the others";
            findings.push(Finding::warning("stored", &subject, what));
            continue;
        }
        match Store::open(&path, genesis.chain_id()) {
            Ok(store) => {
                let faults = check::all(&store, &genesis);
                let head = store.head().ok().flatten().map_or(0, |(height, _)| height.get());
                if faults.is_empty() {
                    let what = format!("blocks {} to {head} hold together", store.kept_from());
                    findings.push(Finding::ok("stored", &subject, what));
                }
                findings.extend(faults.into_iter().map(|fault| {
                    Finding::problem("stored", &subject, fault.to_string()).fix(fix.clone())
                }));
            }
            // Told by another check.
            Err(StorageError::Format { .. } | StorageError::Chain { .. }) => {}
            Err(error) => {
                findings.push(Finding::problem("stored", &subject, error.to_string()).fix(fix));
            }
        }
    }
    findings
}

//! The basis on which commands verify a devnet's answers, and the outcome of a verification.

use crate::{
    commands::devnet::saved_plan,
    context::Context,
    error::{CliError, Exit},
    output::Progress,
};
use cowboy_devnet::{
    client::Client,
    handout::{GenesisDocument, Peers},
    home::DevnetHome,
    orchestrator::genesis::genesis,
    topology::TopologyError,
    types::BytesText,
    verification::{Root, report::TrustedGenesis},
};
use std::path::Path;

/// The genesis of the selected devnet, from the topology in its folder, and a client of it.
pub fn root(cx: &Context) -> Result<(Root, Client), CliError> {
    let devnet = cx.running(None)?;
    Ok((root_of(&devnet)?, cx.client_of(&devnet)?))
}

/// The genesis of a devnet or a node, from the files in its folder.
pub fn root_of(devnet: &DevnetHome) -> Result<Root, CliError> {
    let (document, source) = document_of(devnet)?.ok_or_else(|| {
        let what = format!("devnet `{}` has no topology", devnet.name());
        CliError::new(Exit::NotFound, what).hint("start it again: cowboyctl devnet up")
    })?;
    let cannot = format!("{source} cannot start a chain");
    document.root(source).map_err(|error| CliError::failed(format!("{cannot}: {error}")))
}

/// The genesis document of a devnet or a node, from the files in its folder, and what that is in
/// words; `None` if it never started.
pub fn document_of(devnet: &DevnetHome) -> Result<Option<(GenesisDocument, String)>, CliError> {
    if devnet.is_of_node() {
        let document = loaded(&devnet.genesis_path())?;
        return Ok(Some((document, format!("the genesis document of node `{}`", devnet.name()))));
    }
    Ok(saved_plan(devnet)?.map(|plan| {
        let document = GenesisDocument::of(&plan, genesis(&plan));
        (document, format!("the topology of devnet `{}`", devnet.name()))
    }))
}

/// Reads a genesis document.
pub fn loaded(path: &Path) -> Result<GenesisDocument, CliError> {
    GenesisDocument::load(path).map_err(malformed)
}

/// Reads the places of validators.
pub fn places(path: &Path) -> Result<Peers, CliError> {
    Peers::load(path).map_err(malformed)
}

fn malformed(error: TopologyError) -> CliError {
    CliError::from(error).hint("write the files again: cowboyctl devnet export nodes DIR")
}

pub fn consensus_keys(named: &[BytesText]) -> Result<Vec<[u8; 32]>, CliError> {
    let key = |key: &BytesText| {
        key.0.0.as_slice().try_into().map_err(|_| {
            let what = format!("{key} is not a consensus key");
            CliError::new(Exit::Usage, what).hint("expected 0x and 64 hex digits")
        })
    };
    named.iter().map(key).collect()
}

pub fn shown(progress: &Progress) -> impl Fn(u64) + '_ {
    |height| progress.show(format!("verified up to block {height}"))
}

pub fn trusted(trusted: &TrustedGenesis) -> String {
    let TrustedGenesis { source, chain_id, genesis } = trusted;
    format!("genesis {genesis} of {source}, chain {chain_id}")
}

/// The result of a command with a verdict; if not `valid`, an error with `what` and the first
/// fault.
pub fn concluded(valid: bool, what: String, first: Option<String>) -> Result<(), CliError> {
    match valid {
        true => Ok(()),
        false => Err(CliError { detail: first, ..CliError::new(Exit::Invalid, what) }),
    }
}

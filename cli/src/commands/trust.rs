//! The basis on which commands verify a devnet's answers, and the outcome of a verification.

use crate::{
    commands::devnet::saved_plan,
    context::Context,
    error::{CliError, Exit},
    output::Progress,
};
use cowboy_devnet::{
    client::Client,
    home::DevnetHome,
    orchestrator::genesis::genesis,
    types::BytesText,
    verification::{Root, report::TrustedGenesis},
};

/// The genesis of the selected devnet, from the topology in its folder, and a client of it.
pub fn root(cx: &Context) -> Result<(Root, Client), CliError> {
    let devnet = cx.running(None)?;
    Ok((root_of(&devnet)?, cx.client_of(&devnet)?))
}

/// The genesis of a devnet, from the topology in its folder.
pub fn root_of(devnet: &DevnetHome) -> Result<Root, CliError> {
    let plan = saved_plan(devnet)?.ok_or_else(|| {
        let what = format!("devnet `{}` has no topology", devnet.name());
        CliError::new(Exit::NotFound, what).hint("start it again: cowboyctl devnet up")
    })?;
    let source = format!("the topology of devnet `{}`", devnet.name());
    Root::of_plan(genesis(&plan), &plan, source)
        .map_err(|error| CliError::failed(format!("the topology cannot start a chain: {error}")))
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

//! Selects the lease server for a command, and its credentials.

use crate::{
    args,
    context::{self, Context},
    error::{CliError, Exit},
};
use clap::Args;
use cowboy_devnet::orchestrator::home::DevnetState;
use cowboy_lease::{
    client::{Client, Tls},
    folder::LeaseFolder,
};
use std::path::PathBuf;

/// Selects the lease server.
#[derive(Debug, Clone, Args)]
pub struct ServerChoice {
    /// The lease server [default: the current devnet's, else that of `lease serve`]
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// The token to authenticate with [default: the one in the folder of this machine's server]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// CA certificates, PEM, to verify the server with instead of the system's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// A client certificate and its key, PEM, for a server that asks for one
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
}

/// A server of this machine, from its own record.
struct Local {
    url: String,
    token: String,
}

impl ServerChoice {
    /// A client of the selected server, as its operator.
    pub fn client(&self, cx: &Context) -> Result<Client, CliError> {
        let Local { url, token } = self.find(cx)?;
        Ok(Client::new(&url, &token, &self.tls()?)?)
    }

    pub fn tls(&self) -> Result<Tls, CliError> {
        let read = |file: &Option<PathBuf>| file.as_deref().map(args::pem).transpose();
        Ok(Tls { roots: read(&self.ca)?, identity: read(&self.identity)? })
    }

    pub fn token(&self) -> Result<Option<String>, CliError> {
        self.token_file.as_deref().map(args::token).transpose()
    }

    fn find(&self, cx: &Context) -> Result<Local, CliError> {
        let given = self.token()?;
        let Some(url) = &self.server else {
            let Local { url, token } = local(cx)?;
            return Ok(Local { url, token: given.unwrap_or(token) });
        };
        if let Some(token) = given {
            return Ok(Local { url: url.clone(), token });
        }
        // A server of this machine may be given by its address, too.
        let same = |a: &str, b: &str| a.trim_end_matches('/') == b.trim_end_matches('/');
        match local(cx) {
            Ok(local) if same(&local.url, url) => Ok(local),
            _ => {
                Err(CliError::new(Exit::Usage, format!("--server {url}: there is no token for it"))
                    .hint("name the file with it: --token-file FILE"))
            }
        }
    }
}

/// The server of this machine: that of the selected devnet, else the standalone one.
fn local(cx: &Context) -> Result<Local, CliError> {
    let mut looked = Vec::new();
    let named = cx.chosen()?.map(|chosen| chosen.name);
    let devnets = match &named {
        Some(name) => vec![context::home()?.devnet(name)],
        None => context::home()?.list()?,
    };
    let mut serving = Vec::new();
    for devnet in &devnets {
        let DevnetState::Running(record) = devnet.state()? else { continue };
        match record.lease_url {
            Some(url) => serving.push((devnet, url)),
            None => looked.push(format!("devnet `{}` has none", devnet.name())),
        }
    }
    match (serving.pop(), &named) {
        (Some((devnet, url)), _) if serving.is_empty() => Ok(Local { url, token: devnet.token()? }),
        (Some((last, _)), _) => {
            serving.sort_by_key(|(devnet, _)| devnet.name().clone());
            let names = serving.iter().map(|(devnet, _)| devnet.name().as_str());
            let names = names.chain([last.name().as_str()]).collect::<Vec<_>>().join(", ");
            Err(CliError::new(Exit::Usage, format!("several devnets have lease servers: {names}"))
                .hint("say which: --devnet NAME, or cowboyctl devnet use NAME"))
        }
        // The devnet was named, so no other server is meant.
        (None, Some(name)) if looked.is_empty() => {
            Err(CliError::new(Exit::NotRunning, format!("devnet `{name}` is not running"))
                .hint(format!("start it: cowboyctl devnet up --detach --name {name}")))
        }
        (None, Some(_)) => Err(none(looked)),
        (None, None) => match alone()? {
            Some(local) => Ok(local),
            None => {
                if looked.is_empty() {
                    looked.push("no devnet runs".to_owned());
                }
                looked.push("no `lease serve` runs".to_owned());
                Err(none(looked))
            }
        },
    }
}

fn none(looked: Vec<String>) -> CliError {
    CliError::new(Exit::NotRunning, format!("there is no lease server: {}", looked.join(", ")))
        .hint("start one: cowboyctl lease serve; or name one: --server URL --token-file FILE")
}

/// The server of `lease serve`, if one is running.
fn alone() -> Result<Option<Local>, CliError> {
    let folder = LeaseFolder::of(context::home()?.path());
    let Some(record) = folder.record()? else { return Ok(None) };
    Ok(folder.token()?.map(|token| Local { url: record.url, token }))
}
